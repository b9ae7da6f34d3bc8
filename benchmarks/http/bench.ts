import { parseArgs } from 'node:util';
import { quantile, type Report } from '../report.ts';
import { load, type Outcome } from './load.ts';
import { requestMix } from './requests.ts';
import { startServer } from './server.ts';

const HELP = `npm run bench -- http [--clients=1,16,256,1000] [--seconds=30] [--quick]

The whole server (assay serve, the starter model) under clients that send decide, extract and chat requests, each one after another.
The clients run on the same machine and take their share of it.`;

const SYSTEM = 'assay serve';
/** Requests before anything is measured. */
const WARM_UP_MS = 2_000;

export async function run(report: Report, args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      clients: { type: 'string' },
      seconds: { type: 'string' },
      quick: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return console.log(HELP);
  const levels = (values.clients ?? (values.quick ? '1,16' : '1,16,256,1000')).split(',').map(Number);
  const seconds = Number(values.seconds ?? (values.quick ? 3 : 30));
  const request = await requestMix();
  let sent = 0;
  const next = () => request(sent++);
  const server = await startServer();
  try {
    await load(server.url, 2, WARM_UP_MS, next);
    for (const clients of levels) {
      let peak = server.memory();
      const sampling = setInterval(() => {
        peak = Math.max(peak, server.memory());
      }, 250);
      const began = performance.now();
      const outcomes = await load(server.url, clients, seconds * 1000, next);
      clearInterval(sampling);
      const name = clients === 1 ? '1 client' : `${clients} clients`;
      reportLevel(name, outcomes, (performance.now() - began) / 1000, report);
      report({ system: SYSTEM, case: name, metric: 'memory, most', value: peak / 2 ** 20, unit: 'MiB' });
    }
  } finally {
    await server.stop();
  }
}

function reportLevel(name: string, outcomes: readonly Outcome[], seconds: number, report: Report): void {
  const say = (metric: string, value: number, unit: string) =>
    report({ system: SYSTEM, case: name, metric, value, unit });
  const times = (metric: string, some: readonly Outcome[]) => {
    if (some.length === 0) return;
    const sorted = some.map(({ ms }) => ms).sort((one, other) => one - other);
    say(`${metric}, p50`, quantile(sorted, 0.5), 'ms');
    say(`${metric}, p99`, quantile(sorted, 0.99), 'ms');
  };
  const work = outcomes.filter(({ kind }) => kind === 'decide' || kind === 'extract' || kind === 'chat');
  const answered = work.filter(({ status }) => status === 200);
  const refused = work.filter(({ status }) => status === 429 || status === 503);
  say('requests answered', answered.length / seconds, '1/s');
  times('answer', answered);
  for (const kind of ['decide', 'extract', 'chat'] as const) {
    times(
      kind,
      answered.filter((one) => one.kind === kind),
    );
  }
  say('refused', refused.length / seconds, '1/s');
  times('refusal for load', refused);
  times(
    'refusal of a wrong key',
    outcomes.filter(({ kind }) => kind === 'bad key'),
  );
  times(
    'refusal of a bad body',
    outcomes.filter(({ kind }) => kind === 'bad body'),
  );
  times(
    'health',
    outcomes.filter(({ kind }) => kind === 'health'),
  );
  say('failed otherwise', work.length - answered.length - refused.length, 'requests');
}
