"""A plan as SQL: typed syntax trees with quoted names, the same for every engine; a `Dialect` writes them as text.

`syntax` small parts · `stored` clean values of stored columns · `expressions` of one row · `relation` rows of a plan ·
`keys` what rows are grouped by · `group_by` rows of a request as numbers · `aggregate` measures of all groups.
"""
