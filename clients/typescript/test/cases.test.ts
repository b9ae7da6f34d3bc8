// Runs clients/cases.json. ASSAY_CASES_URL and ASSAY_STARTER_URL come from `npm run clients`.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import * as assay from 'assay-client';
import { matches } from './matching.ts';

interface Case {
  id: string;
  server?: 'starter' | 'none';
  client?: { api_key?: string; timeout_seconds?: number; max_retries?: number };
  call: keyof typeof CALLS;
  request: never;
  expect: {
    response?: unknown;
    incomplete?: string;
    error?: { kind: keyof typeof KINDS; message?: string; [field: string]: unknown };
    sent?: unknown;
    attempts?: number;
    at_least_seconds?: number;
  };
}

const CALLS = {
  run_tasks: 'runTasks',
  decide_extract: 'decideExtract',
  decide: 'decide',
  extract: 'extract',
  decisions: 'decisions',
  system_one: 'systemOne',
  rerank: 'rerank',
} as const;

const KINDS = {
  bad_request: assay.BadRequestError,
  authentication: assay.AuthenticationError,
  permission: assay.PermissionDeniedError,
  unprocessable: assay.UnprocessableEntityError,
  rate_limit: assay.RateLimitError,
  server: assay.ServerError,
  not_found: assay.AssayStatusError,
  other: assay.AssayStatusError,
  timeout: assay.AssayTimeoutError,
  connection: assay.AssayConnectionError,
};

const FIELDS: Record<string, string> = { retry_after: 'retryAfter', request_id: 'requestId' };

const { cases } = JSON.parse(readFileSync(new URL('../../cases.json', import.meta.url), 'utf8')) as { cases: Case[] };
const { ASSAY_CASES_URL, ASSAY_STARTER_URL } = process.env;

for (const one of cases) {
  test(one.id, async () => {
    const { call, request, expect } = one;
    await seen(one);
    const begin = performance.now();
    const answer = client(one)[CALLS[call]](request);
    if (expect.error) await checkError(answer, expect.error);
    else checkResponse(await answer, expect);
    const seconds = (performance.now() - begin) / 1000;
    assert.ok(seconds >= (expect.at_least_seconds ?? 0), `after ${seconds} s`);
    const told = await seen(one);
    assert.equal(told.attempts, expect.attempts ?? told.attempts);
    assert.ok(matches(told.sent, expect.sent ?? told.sent), JSON.stringify(told.sent));
  });
}

function client({ id, server, client: { api_key, timeout_seconds, max_retries } = {} }: Case): assay.Assay {
  const urls = { starter: ASSAY_STARTER_URL!, none: 'http://127.0.0.1:9' };
  return new assay.Assay({
    baseUrl: server ? urls[server] : `${ASSAY_CASES_URL}/cases/${id}`,
    apiKey: api_key ?? 'demo',
    ...(timeout_seconds === undefined ? {} : { timeout: timeout_seconds * 1000 }),
    ...(max_retries === undefined ? {} : { maxRetries: max_retries }),
  });
}

async function checkError(
  answer: Promise<unknown>,
  { kind, message, ...fields }: NonNullable<Case['expect']['error']>,
) {
  const error: unknown = await answer.then(
    () => assert.fail('no error came'),
    (error) => error,
  );
  assert.equal((error as Error).constructor, KINDS[kind], String(error));
  if (message) assert.match((error as Error).message, new RegExp(message));
  for (const [name, value] of Object.entries(fields)) {
    assert.equal((error as Record<string, unknown>)[FIELDS[name] ?? name], value, name);
  }
  if (error instanceof assay.AssayStatusError && error.code !== null) assert.ok(error.requestId);
}

function checkResponse(
  response:
    | assay.RunTasksResponse
    | assay.DecideResponse
    | assay.ExtractResponse
    | assay.DecisionsResponse
    | assay.SystemOneResponse
    | assay.RerankResponse,
  expect: Case['expect'],
) {
  assert.ok(matches(response, expect.response ?? {}), JSON.stringify(response));
  if (!('choices' in response)) return;
  if (!expect.incomplete) return assert.equal(assay.ensureComplete(response), response);
  assert.throws(
    () => assay.ensureComplete(response),
    (error) =>
      error instanceof assay.IncompleteError && error.finishReason === expect.incomplete && error.response === response,
  );
}

async function seen({ id }: Case): Promise<{ attempts: number; sent: unknown }> {
  return (await fetch(`${ASSAY_CASES_URL}/seen/${id}`)).json() as never;
}
