"""A function of SQL: python with_duckdb.py mails.parquet http://127.0.0.1:8080 KEY"""

import sys

import duckdb
from assay_rows import Assay

file, url, key = sys.argv[1:4]
assay = Assay([url], key, {"refund": {"type": "noul", "instructions": "Does the customer want a refund?"}})



def wants_refund(text):
    answers = assay.ask(text)
    return answers and answers["refund"]["noul"]


db = duckdb.connect()
db.create_function("wants_refund", wants_refund, ["VARCHAR"], "DOUBLE", null_handling="special")
db.execute("SET threads = 4")
print(db.execute("SELECT text, wants_refund(text) AS refund FROM read_parquet(?) ORDER BY refund DESC", [file]).fetchall())
