import { expect, it } from 'vitest';
import { figuresBetween, readSample } from './top.ts';

const text = (requests: number, tokens: number) => `# HELP assay_requests_total Requests.
# TYPE assay_requests_total counter
assay_requests_total{kind="tasks",outcome="ok"} ${requests}
assay_requests_total{kind="chat",outcome="overloaded"} 1
assay_requests_running 2
assay_requests_waiting 0
assay_completion_tokens_total{kind="chat"} ${tokens}
assay_engine_resident_bytes 3e+8
assay_calibration_error{kind="choice"} NaN
`;

it('reads metrics, the sum over their labels, and skips what is no number', () => {
  const { values } = readSample(text(4, 10), 0);
  expect(Object.fromEntries(values)).toEqual({
    assay_requests_total: 5,
    assay_requests_running: 2,
    assay_requests_waiting: 0,
    assay_completion_tokens_total: 10,
    assay_engine_resident_bytes: 3e8,
  });
});

it.each([
  [
    'counters as rates, gauges as they are',
    text(4, 10),
    text(10, 60),
    { requests_per_second: 3, completion_tokens_per_second: 25 },
  ],
  [
    'a server that was restarted',
    text(100, 900),
    text(1, 20),
    { requests_per_second: 1, completion_tokens_per_second: 10 },
  ],
])('%s', (_, before, now, rates) => {
  expect(figuresBetween(readSample(before, 1000), readSample(now, 3000))).toMatchObject({
    requests_running: 2,
    requests_waiting: 0,
    engine_memory_bytes: 3e8,
    server_memory_bytes: null,
    ...rates,
  });
});
