"""The contract's checks, each a function (mechanism, effort) -> Finding, by theme."""
