import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { answerProblems } from '../contract/bodies.ts';
import type { Recorded } from '../scripted-backend/script.ts';
import { isForwarded } from './edge-host.ts';
import type { Host } from './host.ts';
import { openHost } from './hosts.ts';
import type { Expectation, HostName, Row, RowRequest } from './row.ts';
import { eventsOf, type Received } from './send.ts';
import { tables } from './tables.ts';

/** Runs every row of every table in one host. */
export function playAllIn(name: HostName): void {
  let host: Host;
  beforeAll(async () => {
    host = await openHost(name);
  }, 60_000);
  afterAll(() => host?.close());

  for (const [table, all] of Object.entries(tables)) {
    const rows = name === 'edge' ? all.filter(isForwarded) : all;
    describe.skipIf(rows.length === 0)(table, () => {
      for (const [i, row] of rows.entries()) {
        const skipped = row.skip?.hosts.includes(name) ?? false;
        test.skipIf(skipped)(row.name, () => play(host, row, `${table}-${i}`.replaceAll(' ', '-')));
      }
    });
  }
}

async function play(host: Host, row: Row, id: string): Promise<void> {
  const setUp = { method: 'PUT', path: `/-/rows/${id}`, headers: {}, json: { app: row.app, script: row.script } };
  expect((await host.send(setUp))?.status).toBe(200);
  for (const step of [row, ...(row.next ?? [])]) {
    const leaving = step.request.leave === 'while the backend waits' ? backendWaits(host, id, step) : undefined;
    const received = await host.send(withDefaults(step.request, id), leaving);
    if (received) {
      check(received, step.expect);
      checkContract(step.request, received);
    }
    if (step.expect.calls) await checkCalls(host, id, step.expect.calls);
  }
}

function withDefaults(request: RowRequest, id: string) {
  const hasBody = bodyIn(request);
  const headers = {
    'x-row': id,
    authorization: 'Bearer test-key',
    ...(hasBody ? { 'content-type': 'application/json' } : {}),
    ...request.headers,
  };
  const sent = Object.entries(headers).filter((pair): pair is [string, string] => pair[1] !== null);
  return { ...request, method: methodOf(request), headers: Object.fromEntries(sent) };
}

function bodyIn({ json, body, chunks }: RowRequest): boolean {
  return json !== undefined || body !== undefined || chunks !== undefined;
}

function methodOf(request: RowRequest): string {
  return request.method ?? (bodyIn(request) ? 'POST' : 'GET');
}

function check(received: Received, expected: Expectation): void {
  const { status, headers, text } = received;
  expect({ status, body: text }).toEqual({ status: expected.status ?? 200, body: text });
  expect(headers.get('x-request-id')).toMatch(/^[A-Za-z0-9._:-]{1,128}$/);
  for (const [name, value] of Object.entries(expected.headers ?? {})) {
    if (value instanceof RegExp) expect(headers.get(name), name).toMatch(value);
    else expect(headers.get(name), name).toBe(value);
  }
  if (expected.text !== undefined) expect(text).toBe(expected.text);
  if (expected.json !== undefined) expect(JSON.parse(text)).toEqual(expected.json);
  if (expected.like !== undefined) expect(JSON.parse(text)).toMatchObject(expected.like);
  if (expected.error !== undefined) checkError(JSON.parse(text), expected.error);
  if (expected.events !== undefined) expect(eventsOf(text)).toEqual(expected.events);
  if (expected.comments) expect(text).toMatch(/^:/m);
}

/** Every response obeys the contract, each event of a stream too. */
function checkContract(request: RowRequest, { status, headers, text }: Received): void {
  const path = request.path.split('?')[0] ?? '';
  const method = methodOf(request);
  const type = headers.get('content-type')?.split(';')[0] ?? '';
  if (text === '' || method === 'HEAD' || type === 'text/plain') return;
  const lines = type === 'application/x-ndjson' ? text.trim().split('\n') : [text];
  const bodies =
    type === 'text/event-stream'
      ? eventsOf(text).filter((data) => data !== '[DONE]')
      : lines.map((line) => JSON.parse(line));
  for (const body of bodies) {
    const failed = status === 200 && Boolean(body.error);
    expect(answerProblems(method, path, failed ? 500 : status, type, body)).toEqual([]);
  }
}

function checkError(body: { error?: object }, expected: NonNullable<Expectation['error']>): void {
  const { message = /./, ...fields } = typeof expected === 'string' ? { code: expected } : expected;
  expect(body).toEqual({ error: expect.anything() });
  expect(body.error).toMatchObject({ message: expect.stringMatching(message), ...fields });
}

/** An abort may reach the backend a moment later, so this waits for it; an additional call always fails the row. */
async function checkCalls(host: Host, id: string, expected: NonNullable<Expectation['calls']>): Promise<void> {
  const wanted = expected.map((one) => (typeof one === 'string' ? { call: one } : one));
  await expectCount(host, id, wanted.length);
  expect(await callsOf(host, id)).toMatchObject(wanted);
}

/** All calls have arrived except the last, the abort. */
function backendWaits(host: Host, id: string, step: Pick<Row, 'expect'>): Promise<void> {
  return expectCount(host, id, step.expect.calls!.length - 1);
}

async function expectCount(host: Host, id: string, count: number): Promise<void> {
  await expect.poll(async () => (await callsOf(host, id)).length, { interval: 20 }).toBe(count);
}

async function callsOf(host: Host, id: string): Promise<Recorded[]> {
  const answer = await host.send({ method: 'GET', path: `/-/rows/${id}`, headers: {} });
  return JSON.parse(answer?.text ?? 'null');
}
