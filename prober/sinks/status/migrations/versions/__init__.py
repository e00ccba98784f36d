"""One module for each revision of the status store, in the style of Alembic.

`oldest_program` names the revision of the oldest program that may use a store of this revision. A revision that only adds keeps the value
of the revision before it. It may add tables, indexes that are not unique, and columns that are nullable or have a default in the database;
`tests/unit/sinks/status/test_revisions.py` compares the tables. Any other change is breaking and names itself. A value of an enumeration or
a field of JSON that older programs cannot read is breaking too: such a revision changes no table.

`downgrade` undoes `upgrade` and keeps the data of all other columns. The first revision has none.
"""
