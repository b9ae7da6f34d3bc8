"""Tests the two decision formats against the real server."""

from __future__ import annotations

import asyncio
import os

import assay
import pytest

URL = os.environ["ASSAY_STARTER_URL"]
TEXT = "The parcel came late. I want my money back."


def test_decisions() -> None:
    with assay.Assay(base_url=URL, api_key="demo") as client:
        answer = client.decisions(
            model="assay/starter",
            input=TEXT,
            questions=[
                assay.PredicateQuestion(instructions="Does the customer want money back?", name="refund"),
                assay.ChoiceQuestion(
                    instructions="Which team?",
                    choices=[assay.DecisionChoice(value="billing"), assay.DecisionChoice(value=True)],
                ),
                assay.ScoreQuestion(
                    instructions="How angry?",
                    levels=[assay.DecisionLevel(label="calm"), assay.DecisionLevel(label="angry")],
                ),
                assay.ExtractQuestion(instructions="What came late?", keys=["thing"]),
            ],
            orders=2,
        )
    refund, team, anger, thing = answer.answers
    assert refund.type == "predicate" and refund.name == "refund" and refund.probability > 0.5
    assert team.type == "choice" and [one.value for one in team.probabilities] == ["billing", True]
    assert sum(one.probability for one in team.probabilities) == pytest.approx(1)
    assert anger.type == "score" and 0 <= anger.score <= 1
    assert thing.type == "extract" and list(thing.data) == ["thing"]


def test_system_one_async() -> None:
    async def ask() -> assay.SystemOneResponse:
        async with assay.AsyncAssay(base_url=URL, api_key="demo") as client:
            return await client.system_one(
                model="assay/starter",
                state={"message": TEXT},
                questions={
                    "refund": assay.NoulQuestion(instructions="Does the customer want money back?"),
                    "team": assay.LabelChoiceQuestion(criteria={"billing": "Payments", "shipping": None}),
                },
            )

    answers = asyncio.run(ask()).answers
    assert answers["refund"].type == "noul" and answers["refund"].noul > 0.5
    team = answers["team"]
    # Labels need no description.
    assert team.type == "choice" and set(team.probabilities) == {"billing", "shipping"}


def test_extractions() -> None:
    with assay.Assay(base_url=URL, api_key="demo") as client:
        answers = client.extractions(
            state=TEXT,
            fields={
                "what": assay.TextField(instructions="What came late?"),
                "days": assay.NumberField(integer=True),
            },
        ).answers
    what = answers["what"]
    assert what.type == "text" and what.span is not None
    start, end = what.span
    assert TEXT[start:end] == what.guess
    assert answers["days"].type == "number" and 0 <= answers["days"].p_null <= 1


def test_errors() -> None:
    with assay.Assay(base_url=URL, api_key="demo") as client:
        with pytest.raises(assay.BadRequestError) as refused:
            client.decisions(model="assay/starter", input=TEXT, questions=[])
        assert (refused.value.code, refused.value.param) == ("invalid_value", "questions")
        with pytest.raises(assay.UnprocessableEntityError) as odd:
            client.system_one(model="assay/starter", state=TEXT, questions={})
        assert (odd.value.code, odd.value.param) == ("invalid_value", "questions")
