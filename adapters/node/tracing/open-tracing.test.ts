import { pino } from 'pino';
import { expect, it } from 'vitest';
import { openTracing } from './open-tracing.ts';

const log = pino({ level: 'silent' });

it.each([
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector'],
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'localhost:4318'],
  ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'localhost:4318'],
])('refuses %s=%s', async (name, value) => {
  await expect(openTracing({ [name]: value }, log)).rejects.toThrow(
    `${name} must be an address, such as http://127.0.0.1:4318.`,
  );
});

it.each<NodeJS.ProcessEnv>([
  {},
  { OTEL_EXPORTER_OTLP_ENDPOINT: '' },
  { OTEL_EXPORTER_OTLP_ENDPOINT: 'x', OTEL_SDK_DISABLED: 'true' },
])('traces nothing with %j', async (env) => {
  expect(await openTracing(env, log)).toBeNull();
});
