"""The questions of the tour: one of each kind, what it shows, and what it may cost."""

from dataclasses import dataclass

from noisette.privacy import Approx, Promise, Pure

__all__ = ["LAST", "MONTHS", "QUESTIONS", "TARGET", "TOO_MUCH", "Question"]


@dataclass(frozen=True)
class Question:
    """A question of the tour; several SQL texts are asked together. `chart` names what is drawn as columns."""

    title: str
    text: str
    sql: tuple[str, ...]
    spend: Promise
    chart: str = ""


QUESTIONS = (
    Question(
        "Counts by declared keys",
        "The owner has declared which wards there are, so every ward gets an answer, with the same error bar.",
        ("SELECT ward, count(*) AS visits\nFROM visits GROUP BY ward",),
        Pure("0.25"),
    ),
    Question(
        "Means and sums within bounds",
        "By declaration a visit costs 0 to 3,000; what is above counts as 3,000. That limits what one patient changes.",
        ("SELECT ward, avg(cost) AS mean_cost, sum(cost) AS total_cost\nFROM visits GROUP BY ward",),
        Pure("0.5"),
    ),
    Question(
        "Bins",
        "Numbers are grouped by rounding them. Which bins there are follows from the declared bounds, not from data.",
        ("SELECT floor(age / 10) * 10 AS age_from, count(*) AS visits\nFROM visits GROUP BY floor(age / 10) * 10",),
        Pure("0.2"),
        chart="visits",
    ),
    Question(
        "Keys that nobody declared",
        "A diagnosis may reveal a person by being there at all, so only those that enough patients share are released. "
        "With a probability of at most δ, a patient's own diagnosis slips through.",
        (
            "SELECT diagnosis, count(DISTINCT patient_id) AS patients\n"
            "FROM visits GROUP BY diagnosis ORDER BY patients DESC",
        ),
        Approx("0.5", "1e-12"),
    ),
    Question(
        "A join with a public table",
        "Which ward is in which region is no secret: public tables can be joined and cost nothing.",
        ("SELECT region, count(*) AS visits\nFROM visits JOIN wards USING (ward) GROUP BY region",),
        Pure("0.2"),
    ),
    Question(
        "About patients instead of visits",
        "The sub-query has one row for each patient, so one patient changes little, and the error bar is small.",
        (
            "SELECT avg(visits) AS visits_per_patient, avg(cost) AS cost_per_patient\n"
            "FROM (SELECT patient_id, least(count(*), 80) AS visits, least(sum(cost), 15000) AS cost\n"
            "      FROM visits GROUP BY patient_id)",
        ),
        Pure("0.1"),
    ),
    Question(
        "Median and quantiles",
        "Quantiles are chosen at random, those near the true rank far more often than others.",
        (
            "SELECT quantile_cont(cost, 0.25) AS lower_quarter, median(cost) AS median_cost,\n"
            "       quantile_cont(cost, 0.9) AS upper_tenth\nFROM visits",
        ),
        Pure("0.25"),
    ),
    Question(
        "Several questions at once",
        "Questions in a list are planned together: what they share is measured once.",
        (
            "SELECT count(*) AS visits_65_up, avg(cost) AS mean_cost_65_up\nFROM visits WHERE age >= 65",
            "SELECT count(DISTINCT patient_id) AS patients\nFROM visits",
        ),
        Pure("0.25"),
    ),
)

MONTHS = Question(
    "An error you can live with",
    "Say how far off an answer may be, and explain finds the ε for it, before anything is read or spent.",
    ("SELECT month(day) AS month, count(*) AS visits\nFROM visits GROUP BY month(day)",),
    Pure(0),
    chart="visits",
)
TARGET = 150.0
"""The error for which MONTHS is asked."""

TOO_MUCH = "SELECT ward, median(age) AS median_age FROM visits GROUP BY ward"
LAST = "SELECT count(DISTINCT patient_id) AS patients FROM visits WHERE diagnosis = 'asthma'"
