"""Rows over a cluster: python with_ray.py mails.parquet out http://box-1:8080,http://box-2:8080 KEY"""

import sys

import ray
from assay_rows import Assay

file, out, urls, key = sys.argv[1:5]
questions = {"refund": {"type": "noul", "instructions": "Does the customer want a refund?"}}

(
    ray.data.read_parquet(file)
    .repartition(8)
    # Each of the actors has one request at a time under way.
    .map_batches(Assay, fn_constructor_args=(urls.split(","), key, questions), batch_size=32, concurrency=4, num_cpus=0.25)
    .write_parquet(out)
)
