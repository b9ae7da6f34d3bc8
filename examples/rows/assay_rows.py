"""Asks Assay the same questions about many rows, from any program that has rows: retries by Retry-After, over boxes."""

import itertools
import json
import time
import urllib.error
import urllib.request


class Assay:
    """A client of one or more boxes. Each request goes to the next box; a busy or missing one is asked again later."""

    def __init__(self, urls, key, questions, attempts=20):
        self.urls = itertools.cycle(urls)
        self.key = key
        self.questions = questions
        self.attempts = attempts

    def ask(self, state):
        """Returns the answers about one text or JSON value by the names of the questions; None if it is too long."""
        body = json.dumps({"state": state, "questions": self.questions}).encode()
        headers = {
            "content-type": "application/json",
            "authorization": f"Bearer {self.key}",
            "assay-priority": "batch",
        }
        for attempt in range(self.attempts):
            request = urllib.request.Request(f"{next(self.urls)}/v1/systemone", body, headers)
            try:
                with urllib.request.urlopen(request, timeout=300) as response:
                    return json.load(response)["answers"]
            except urllib.error.HTTPError as error:
                if json.load(error).get("error", {}).get("code") == "input_too_long":
                    return None
                if error.code != 429 and error.code < 500 or attempt + 1 == self.attempts:
                    raise
                time.sleep(float(error.headers.get("retry-after", 1)))
            except urllib.error.URLError:
                if attempt + 1 == self.attempts:
                    raise
                time.sleep(1)

    def __call__(self, batch):
        """Adds the probability of each yes-or-no question to a batch of columns, as Ray's map_batches passes it."""
        answers = [self.ask(str(text)) for text in batch["text"]]
        return {**batch, **{name: [one and one[name]["noul"] for one in answers] for name in self.questions}}
