"""Asks a server with the clients of the extraction format, and prints what each understood as JSON lines.

usage: extraction-clients.py URL KEY
"""

import asyncio
import datetime
import json
import os
import sys
from typing import Annotated

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import clairic as c
import litellm
from pydantic import BaseModel, Field
from trustcall_system_one import transport as trustcall

URL, KEY = sys.argv[1:]
STATE = "Invoice INV-7 issued March 2, net 30, total $1,080.00. Contacts: Dana, Priya."


class Invoice(BaseModel):
    """Every type of field but the forecast."""

    invoice: Annotated[c.TextAnswer, c.Text(null_threshold=0.8)] = Field(description="The invoice number")
    phone: c.TextAnswer
    total: Annotated[c.NumberAnswer[float], c.Number(decimals=2, unit="USD")]
    issued: c.DateAnswer
    at: c.TimeAnswer
    when: c.DatetimeAnswer
    net: Annotated[c.DurationAnswer[int], c.Duration(unit="days")]
    contacts: c.TextListAnswer
    numbers: c.ListAnswer[int]
    pay: Annotated[c.EstimateAnswer[int], c.Estimate(min=0, max=120, step=1)]


class Sales(BaseModel):
    sales: Annotated[c.ForecastAnswer, c.Forecast(min=0, max=500, horizon=2, interval="month")]


def say(name, value):
    print(json.dumps({"name": name, "value": value}), flush=True)


def errors(name, ask):
    try:
        ask()
        say(name, "no error")
    except Exception as error:
        say(name, type(error).__name__)


def asked(key):
    return c.Clairic(account_id="any", api_token=key, base_url=f"{URL}/client/v4")


ours = asked(KEY)
data = ours.extract(STATE, Invoice, reference_date=datetime.date(2026, 1, 1)).data
say("clairic", {name: type(getattr(data, name)).__name__ for name in Invoice.model_fields})
say("clairic text", [data.invoice.value, STATE[data.invoice.span.start : data.invoice.span.end], data.phone.value])
errors("clairic forecast", lambda: ours.extract(STATE, Sales))
errors("clairic key", lambda: asked("x" * 30).extract(STATE, Invoice))
errors("clairic length", lambda: ours.extract(STATE * 3000, Invoice))

FIELDS = {
    "invoice": {"type": "text", "instructions": "Invoice number"},
    "total": {"type": "number", "decimals": 2, "unit": "USD"},
    "contacts": {"type": "list", "items": "text"},
    "pay": {"type": "estimate", "min": 0, "max": 120, "step": 1},
}
for model in ("cloudflare/clairic", "cloudflare/@cf/assay/starter"):
    said = litellm.extraction(model=model, state=STATE, fields=FIELDS, api_key=KEY, api_base=URL).model_dump()
    say(model, {name: answer["type"] for name, answer in said["answers"].items()})


async def decide():
    to = trustcall.CloudflareTransport(base_url=URL, api_token=KEY, account_id="any")
    body = {"model": "clairic", "state": STATE, "fields": {"invoice": FIELDS["invoice"]}}
    said = await to.run("@cf/cloudflare/clairic", body, meta=trustcall.CallMeta(kind="extract"))
    say("trustcall fields", said.body["answers"]["invoice"]["value"])
    body = {"model": "clef", "state": "Pay me back", "questions": {"a": {"type": "noul", "instructions": "Refund?"}}}
    said = await to.run("@cf/cloudflare/clef", body, meta=trustcall.CallMeta(kind="attribution"))
    say("trustcall questions", said.body["answers"]["a"]["type"])


asyncio.run(decide())
