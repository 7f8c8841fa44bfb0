"""The 22 queries, and the shapes of the comparison with other systems, each as one SELECT that DuckDB reads as well.

`own` ones are TPC-H's own SQL as near as the grammar has it: JOIN ... ON in place of commas, dates that are written
out, no ORDER BY (it is free and changes nothing). The others say what is not private and ask for what comes nearest.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """A query: its name, whose data it protects, the SELECT, and what is not private about TPC-H's own form."""

    name: str
    project: str
    sql: str
    instead: str = ""

    @property
    def own(self) -> bool:
        """Whether it is TPC-H's own query."""
        return not self.instead


_VOLUME = "l_extendedprice * (1 - l_discount)"


def _customers(name: str, sql: str, instead: str = "") -> Shape:
    return Shape(name, "customers", sql, instead)


def _suppliers(name: str, sql: str, instead: str = "") -> Shape:
    return Shape(name, "suppliers", sql, instead)


QUERIES = (
    _customers(
        "Q1",
        f"""
        SELECT l_returnflag, l_linestatus, sum(l_quantity) AS sum_qty, sum(l_extendedprice) AS sum_base_price,
               sum({_VOLUME}) AS sum_disc_price, sum({_VOLUME} * (1 + l_tax)) AS sum_charge,
               avg(l_quantity) AS avg_qty, avg(l_extendedprice) AS avg_price, avg(l_discount) AS avg_disc,
               count(*) AS count_order
        FROM lineitem WHERE l_shipdate <= DATE '1998-09-02' GROUP BY l_returnflag, l_linestatus""",
    ),
    _suppliers(
        "Q2",
        """
        SELECT n_name, count(*) AS offers, avg(ps_supplycost) AS cost
        FROM partsupp JOIN supplier ON s_suppkey = ps_suppkey JOIN part ON p_partkey = ps_partkey
             JOIN nation ON s_nationkey = n_nationkey JOIN region ON n_regionkey = r_regionkey
        WHERE p_size = 15 AND p_type LIKE '%BRASS' AND r_name = 'EUROPE' GROUP BY n_name""",
        "It lists the cheapest suppliers with address and balance; asked instead: offers and their mean cost.",
    ),
    _customers(
        "Q3",
        f"""
        SELECT o_shippriority, extract(year FROM o_orderdate) AS o_year, sum({_VOLUME}) AS revenue
        FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey
        WHERE c_mktsegment = 'BUILDING' AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
              AND o_orderdate >= DATE '1994-01-01'
        GROUP BY o_shippriority, o_year""",
        "It lists ten orders, each of one customer; asked instead: the revenue of all of them by year.",
    ),
    _customers(
        "Q4",
        """
        SELECT o_orderpriority, count(*) AS order_count
        FROM (SELECT o_custkey, o_orderkey, o_orderpriority, count(*) AS late
              FROM orders JOIN lineitem ON l_orderkey = o_orderkey
              WHERE o_orderdate >= DATE '1993-07-01' AND o_orderdate < DATE '1993-10-01'
                    AND l_commitdate < l_receiptdate
              GROUP BY o_custkey, o_orderkey, o_orderpriority) AS late_orders
        GROUP BY o_orderpriority""",
    ),
    _customers(
        "Q5",
        f"""
        SELECT n_name, sum({_VOLUME}) AS revenue
        FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey
             JOIN supplier ON l_suppkey = s_suppkey AND c_nationkey = s_nationkey
             JOIN nation ON s_nationkey = n_nationkey JOIN region ON n_regionkey = r_regionkey
        WHERE r_name = 'ASIA' AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01'
        GROUP BY n_name""",
    ),
    _customers(
        "Q6",
        """
        SELECT sum(l_extendedprice * l_discount) AS revenue FROM lineitem
        WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
              AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24""",
    ),
    _customers(
        "Q7",
        f"""
        SELECT supp_nation, cust_nation, l_year, sum(volume) AS revenue
        FROM (SELECT n1.n_name AS supp_nation, n2.n_name AS cust_nation, extract(year FROM l_shipdate) AS l_year,
                     {_VOLUME} AS volume
              FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON o_orderkey = l_orderkey
                   JOIN supplier ON s_suppkey = l_suppkey
                   JOIN nation AS n1 ON s_nationkey = n1.n_nationkey JOIN nation AS n2 ON c_nationkey = n2.n_nationkey
              WHERE ((n1.n_name = 'FRANCE' AND n2.n_name = 'GERMANY')
                     OR (n1.n_name = 'GERMANY' AND n2.n_name = 'FRANCE'))
                    AND l_shipdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31') AS shipping
        GROUP BY supp_nation, cust_nation, l_year""",
    ),
    _customers(
        "Q8",
        f"""
        SELECT o_year, sum(CASE WHEN nation = 'BRAZIL' THEN volume ELSE 0 END) / sum(volume) AS mkt_share
        FROM (SELECT extract(year FROM o_orderdate) AS o_year, {_VOLUME} AS volume, n2.n_name AS nation
              FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey
                   JOIN part ON p_partkey = l_partkey JOIN supplier ON s_suppkey = l_suppkey
                   JOIN nation AS n1 ON c_nationkey = n1.n_nationkey JOIN region ON n1.n_regionkey = r_regionkey
                   JOIN nation AS n2 ON s_nationkey = n2.n_nationkey
              WHERE r_name = 'AMERICA' AND o_orderdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'
                    AND p_type = 'ECONOMY ANODIZED STEEL') AS all_nations
        GROUP BY o_year""",
    ),
    _suppliers(
        "Q9",
        f"""
        SELECT nation, o_year, sum(amount) AS sum_profit
        FROM (SELECT n_name AS nation, extract(year FROM o_orderdate) AS o_year,
                     {_VOLUME} - ps_supplycost * l_quantity AS amount
              FROM lineitem JOIN supplier ON s_suppkey = l_suppkey
                   JOIN partsupp ON ps_suppkey = l_suppkey AND ps_partkey = l_partkey
                   JOIN part ON p_partkey = l_partkey JOIN orders ON o_orderkey = l_orderkey
                   JOIN nation ON s_nationkey = n_nationkey
              WHERE p_name LIKE '%green%') AS profit
        GROUP BY nation, o_year""",
    ),
    _customers(
        "Q10",
        f"""
        SELECT n_name, count(DISTINCT c_custkey) AS customers, sum({_VOLUME}) AS revenue
        FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey
             JOIN nation ON c_nationkey = n_nationkey
        WHERE o_orderdate >= DATE '1993-10-01' AND o_orderdate < DATE '1994-01-01' AND l_returnflag = 'R'
        GROUP BY n_name""",
        "It lists twenty customers with name and address; asked instead: customers and lost revenue by nation.",
    ),
    _suppliers(
        "Q11",
        """
        SELECT p_mfgr, sum(ps_supplycost * ps_availqty) AS value
        FROM partsupp JOIN supplier ON ps_suppkey = s_suppkey JOIN nation ON s_nationkey = n_nationkey
             JOIN part ON p_partkey = ps_partkey
        WHERE n_name = 'GERMANY' GROUP BY p_mfgr""",
        "Each part has at most four suppliers, so a group shows theirs; asked instead: the value by manufacturer.",
    ),
    _customers(
        "Q12",
        """
        SELECT l_shipmode,
               sum(CASE WHEN o_orderpriority = '1-URGENT' OR o_orderpriority = '2-HIGH' THEN 1 ELSE 0 END) AS high,
               sum(CASE WHEN o_orderpriority <> '1-URGENT' AND o_orderpriority <> '2-HIGH' THEN 1 ELSE 0 END) AS low
        FROM orders JOIN lineitem ON o_orderkey = l_orderkey
        WHERE l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate
              AND l_receiptdate >= DATE '1994-01-01' AND l_receiptdate < DATE '1995-01-01'
        GROUP BY l_shipmode""",
    ),
    _customers(
        "Q13",
        """
        SELECT c_count, count(*) AS custdist
        FROM (SELECT c_custkey, count(o_orderkey) AS c_count
              FROM customer LEFT JOIN
                   (SELECT o_custkey, o_orderkey FROM orders WHERE o_comment NOT LIKE '%special%requests%') AS o
                   ON c_custkey = o_custkey
              GROUP BY c_custkey) AS c_orders
        GROUP BY c_count""",
    ),
    _customers(
        "Q14",
        f"""
        SELECT 100.00 * sum(CASE WHEN p_type LIKE 'PROMO%' THEN {_VOLUME} ELSE 0 END) / sum({_VOLUME}) AS promo_revenue
        FROM lineitem JOIN part ON l_partkey = p_partkey
        WHERE l_shipdate >= DATE '1995-09-01' AND l_shipdate < DATE '1995-10-01'""",
    ),
    _suppliers(
        "Q15",
        f"""
        SELECT max(least(total_revenue, 5000000)) AS total_revenue
        FROM (SELECT l_suppkey, sum({_VOLUME}) AS total_revenue FROM lineitem
              WHERE l_shipdate >= DATE '1996-01-01' AND l_shipdate < DATE '1996-04-01'
              GROUP BY l_suppkey) AS revenue""",
        "It names the supplier with most revenue; asked instead: about how much that is, up to 5,000,000.",
    ),
    _suppliers(
        "Q16",
        """
        SELECT p_brand, count(DISTINCT ps_suppkey) AS supplier_cnt
        FROM partsupp JOIN part ON p_partkey = ps_partkey JOIN supplier ON s_suppkey = ps_suppkey
        WHERE p_brand <> 'Brand#45' AND p_type NOT LIKE 'MEDIUM POLISHED%'
              AND p_size IN (49, 14, 23, 45, 19, 3, 36, 9) AND s_comment NOT LIKE '%Customer%Complaints%'
        GROUP BY p_brand""",
        "By brand, type and size a group has about four suppliers and shows them; asked instead: suppliers by brand.",
    ),
    _customers(
        "Q17",
        """
        SELECT sum(least(l_extendedprice, 10500)) / 7.0 AS avg_yearly
        FROM lineitem JOIN part ON p_partkey = l_partkey
        WHERE p_brand = 'Brand#23' AND p_container = 'MED BOX' AND l_quantity < 5.1""",
        "Each row is compared with the mean of other customers' rows; asked instead: with a fifth of the public mean.",
    ),
    _customers(
        "Q18",
        """
        SELECT count(DISTINCT o_custkey) AS customers
        FROM (SELECT o_custkey, o_orderkey, sum(l_quantity) AS quantity
              FROM orders JOIN lineitem ON o_orderkey = l_orderkey GROUP BY o_custkey, o_orderkey
              HAVING sum(l_quantity) > 300) AS large_orders""",
        "It lists customers with their orders; asked instead: how many customers have an order above 300 pieces.",
    ),
    _customers(
        "Q19",
        f"""
        SELECT sum({_VOLUME}) AS revenue
        FROM lineitem JOIN part ON p_partkey = l_partkey
        WHERE l_shipmode IN ('AIR', 'REG AIR') AND l_shipinstruct = 'DELIVER IN PERSON' AND (
              (p_brand = 'Brand#12' AND p_container IN ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG')
               AND l_quantity BETWEEN 1 AND 11 AND p_size BETWEEN 1 AND 5)
              OR (p_brand = 'Brand#23' AND p_container IN ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK')
               AND l_quantity BETWEEN 10 AND 20 AND p_size BETWEEN 1 AND 10)
              OR (p_brand = 'Brand#34' AND p_container IN ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG')
               AND l_quantity BETWEEN 20 AND 30 AND p_size BETWEEN 1 AND 15))""",
    ),
    _suppliers(
        "Q20",
        """
        SELECT count(DISTINCT ps_suppkey) AS suppliers
        FROM partsupp JOIN supplier ON ps_suppkey = s_suppkey JOIN nation ON s_nationkey = n_nationkey
             JOIN part ON p_partkey = ps_partkey
             JOIN (SELECT l_suppkey, l_partkey, sum(l_quantity) AS sold FROM lineitem
                   WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
                   GROUP BY l_suppkey, l_partkey) AS sales ON l_suppkey = ps_suppkey AND l_partkey = ps_partkey
        WHERE n_name = 'CANADA' AND p_name LIKE 'forest%' AND 2 * ps_availqty > sold""",
        "It lists suppliers with address; asked instead: how many they are.",
    ),
    _suppliers(
        "Q21",
        """
        SELECT n_name, count(*) AS late, count(DISTINCT s_suppkey) AS suppliers
        FROM lineitem JOIN supplier ON s_suppkey = l_suppkey JOIN orders ON o_orderkey = l_orderkey
             JOIN nation ON s_nationkey = n_nationkey
        WHERE o_orderstatus = 'F' AND l_receiptdate > l_commitdate AND n_name = 'SAUDI ARABIA' GROUP BY n_name""",
        "It lists suppliers, by what other suppliers of the order did; asked instead: late lines and their suppliers.",
    ),
    _customers(
        "Q22",
        """
        SELECT cntrycode, count(*) AS numcust, sum(balance) AS totacctbal
        FROM (SELECT c_custkey, max(substring(c_phone, 1, 2)) AS cntrycode, max(c_acctbal) AS balance,
                     count(o_custkey) AS orders
              FROM customer LEFT JOIN orders ON o_custkey = c_custkey GROUP BY c_custkey) AS custsale
        WHERE cntrycode IN ('13', '31', '23', '29', '30', '18', '17') AND balance > 4500 AND orders = 0
        GROUP BY cntrycode""",
        "Each balance is compared with the mean of other customers; asked instead: with 4,500, half of the range.",
    ),
)

COMPARED = (
    _customers(
        "customer × nation",
        """
        SELECT n_name, count(*) AS n, avg(c_acctbal) AS mean FROM customer JOIN nation ON c_nationkey = n_nationkey
        GROUP BY n_name""",
    ),
    _customers(
        "customer × orders",
        """
        SELECT c_mktsegment, count(*) AS n, sum(o_totalprice) AS total
        FROM customer JOIN orders ON c_custkey = o_custkey GROUP BY c_mktsegment""",
    ),
    _customers(
        "orders by priority",
        """
        SELECT o_orderpriority, count(*) AS n FROM orders
        WHERE o_orderdate >= DATE '1993-07-01' AND o_orderdate < DATE '1993-10-01' GROUP BY o_orderpriority""",
    ),
    _customers(
        "revenue by nation",
        f"""
        SELECT n_name, sum({_VOLUME}) AS revenue
        FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey
             JOIN nation ON c_nationkey = n_nationkey
        GROUP BY n_name""",
    ),
    _customers(
        "share of promotions",
        f"""
        SELECT 100.00 * sum(CASE WHEN p_type LIKE 'PROMO%' THEN {_VOLUME} ELSE 0 END) / sum({_VOLUME}) AS promo_revenue
        FROM lineitem JOIN part ON l_partkey = p_partkey""",
    ),
    _customers(
        "all orders × lineitem",
        """
        SELECT l_shipmode,
               sum(CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) AS high,
               sum(CASE WHEN o_orderpriority NOT IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) AS low
        FROM orders JOIN lineitem ON o_orderkey = l_orderkey GROUP BY l_shipmode""",
    ),
    _customers(
        "balances by country code",
        """
        SELECT cntrycode, count(*) AS n, sum(c_acctbal) AS total
        FROM (SELECT c_custkey, substring(c_phone, 1, 2) AS cntrycode, c_acctbal FROM customer) AS codes
        WHERE cntrycode IN ('13', '31', '23', '29', '30', '18', '17') GROUP BY cntrycode""",
    ),
    _customers(
        "variance of prices",
        "SELECT var_pop(o_totalprice) AS variance, stddev_pop(o_totalprice) AS deviation FROM orders",
    ),
    _customers("median of prices", "SELECT median(o_totalprice) AS middle FROM orders"),
    _customers(
        "customers by nation",
        """
        SELECT n_name, count(DISTINCT c_custkey) AS n FROM customer JOIN nation ON c_nationkey = n_nationkey
        GROUP BY n_name""",
    ),
)
"""Further shapes for the comparison with other systems, beside Q1, Q6 and Q13.

The other systems were asked Q4, Q5, Q12, Q14 and Q22 without most of their conditions: their errors fit these shapes.
"""
