import { execFile } from 'node:child_process';
import { mkdtemp } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type RunningServer, startServer } from '../../adapters/node/server.ts';
import type { Tracing } from '../../adapters/node/tracing/export-traces.ts';
import { openTracing } from '../../adapters/node/tracing/open-tracing.ts';
import { createApp } from '../../handlers/app.ts';
import { type Machine, startMachine } from '../engine-process/machine.ts';

/* Spans of the real engine, as a collector gets them by OTLP over HTTP. */

interface SentSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: { key: string; value: { stringValue?: string; intValue?: number } }[];
  status: { code?: number };
}

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = 'b7ad6b7169203331';
const ERROR = 2;

const sent: SentSpan[] = [];
const services: string[] = [];
let collector: Server;
let machine: Machine;
let tracing: Tracing;
let server: RunningServer;

beforeAll(async () => {
  collector = createServer(async (request, response) => {
    const body: Buffer[] = [];
    for await (const piece of request) body.push(piece);
    const { resourceSpans } = JSON.parse(Buffer.concat(body).toString());
    for (const { resource, scopeSpans } of resourceSpans) {
      services.push(resource.attributes.find(({ key }: { key: string }) => key === 'service.name').value.stringValue);
      for (const { spans } of scopeSpans) sent.push(...spans);
    }
    response.setHeader('content-type', 'application/json').end('{}');
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => collector.once('listening', resolve));
  // The exporter reads its variables itself.
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', `http://127.0.0.1:${(collector.address() as AddressInfo).port}`);
  const opened = await openTracing(process.env, pino({ level: 'silent' }));
  if (!opened) throw new Error('tracing is off');
  tracing = opened;
  machine = await startMachine('optimum/qwen3', { onAnswered: tracing.answered });
  const app = createApp({ backend: machine.backend, apis: ['models'], beginTraces: true, log: tracing.log });
  server = await startServer(app.fetch, { host: '127.0.0.1', port: 0 });
  const headers = { 'content-type': 'application/json' };
  const ask = async (more: object, extra: Record<string, string> = {}) => {
    const body = JSON.stringify({ messages: [{ role: 'user', content: 'Hi' }], max_tokens: 8, seed: 1, ...more });
    const init = { method: 'POST', headers: { ...headers, ...extra }, body };
    await (await fetch(`${server.url}/v1/chat/completions`, init)).text();
  };
  await ask({}, { traceparent: `00-${TRACE}-${PARENT}-01`, 'x-request-id': 'blocking' });
  await ask({ stream: true }, { 'x-request-id': 'stream' });
  await ask({ temperature: 9 }, { 'x-request-id': 'refused' });
  await ask({}, { traceparent: `00-${TRACE}-${PARENT}-00`, 'x-request-id': 'unsampled' });
  await fetch(`${server.url}/v1/models/a/b`, { headers: { 'x-request-id': 'model' } });
  await tracing.close();
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await server?.close(0);
  await machine?.close();
  collector?.close();
});

const attribute = (span: SentSpan | undefined, key: string) => {
  const value = span?.attributes.find((one) => one.key === key)?.value;
  return value?.stringValue ?? value?.intValue;
};
const request = (id: string) => sent.find((span) => attribute(span, 'assay.request_id') === id);
const below = (span: SentSpan | undefined) => sent.filter(({ parentSpanId }) => span && parentSpanId === span.spanId);

describe('a request with traceparent', () => {
  test('is a server span of that trace, below the span of the caller', () => {
    const span = request('blocking');
    expect(span).toMatchObject({ traceId: TRACE, parentSpanId: PARENT, name: 'POST /v1/chat/completions', kind: 2 });
    expect(attribute(span, 'http.response.status_code')).toBe(200);
    expect(attribute(span, 'http.route')).toBe('/v1/chat/completions');
    expect(new Set(services)).toEqual(new Set(['assay']));
  });

  test('has its stages below it, one after the other, with tokens and the model', () => {
    const span = request('blocking');
    const stages = below(span);
    expect(stages.map(({ name }) => name)).toEqual(['queue', 'prefill', 'decode']);
    const [queue, prefill, decode] = stages;
    expect(queue?.endTimeUnixNano).toBe(prefill?.startTimeUnixNano);
    expect(prefill?.endTimeUnixNano).toBe(decode?.startTimeUnixNano);
    expect(attribute(prefill, 'gen_ai.response.model')).toBe('test/tiny');
    expect(Number(attribute(prefill, 'gen_ai.usage.input_tokens'))).toBeGreaterThan(1);
    expect(Number(attribute(decode, 'gen_ai.usage.output_tokens'))).toBeGreaterThan(0);
    for (const stage of stages) {
      expect(stage.traceId).toBe(TRACE);
      expect(BigInt(stage.endTimeUnixNano)).toBeLessThanOrEqual(BigInt(span?.endTimeUnixNano ?? 0));
    }
  });

  test('that is not sampled sends nothing', () => {
    expect(request('unsampled')).toBeUndefined();
    expect(sent.filter(({ traceId }) => traceId === TRACE)).toHaveLength(4);
  });
});

test('a stream without traceparent begins a trace, and its span ends with the stream', () => {
  const span = request('stream');
  expect(span?.traceId).toMatch(/^(?!0{32})[0-9a-f]{32}$/u);
  expect(span?.parentSpanId ?? '').toBe('');
  const decode = below(span).find(({ name }) => name === 'decode');
  expect(BigInt(span?.endTimeUnixNano ?? 0)).toBeGreaterThanOrEqual(BigInt(decode?.endTimeUnixNano ?? 1));
});

test('a refused request has no stages, and is no error of the server', () => {
  const span = request('refused');
  expect(attribute(span, 'http.response.status_code')).toBe(400);
  expect(span?.status.code).not.toBe(ERROR);
  expect(below(span)).toEqual([]);
});

test('the name of a span has no model in it', () => {
  expect(request('model')?.name).toBe('GET /v1/models/{model_id}');
});

test.each([
  [{}, false],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1', OTEL_SDK_DISABLED: 'true' }, false],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' }, true],
])('packages are loaded only with the variable: %j', async (env, loaded) => {
  const program = fileURLToPath(new URL('./serve-and-list-modules.ts', import.meta.url));
  const home = await mkdtemp(join(tmpdir(), 'assay-tracing-'));
  const { stdout } = await promisify(execFile)(process.execPath, [program, home], {
    env: { PATH: process.env.PATH ?? '', ...env },
  });
  // The metrics' library always loads `@opentelemetry/api`.
  expect(stdout.includes('@opentelemetry/sdk-trace')).toBe(loaded);
});
