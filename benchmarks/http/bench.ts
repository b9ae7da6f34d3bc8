import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { at } from '../../lib/at.ts';
import { quantile, type Report } from '../report.ts';
import type { CrowdReport, CrowdWork, Outcome } from './crowd.ts';
import { type Probe, probe } from './probes.ts';
import { type LoggedRequest, type ServerProcess, startServer } from './server.ts';
import { processorSeconds, residentBytes } from './usage.ts';

const HELP = `npm run bench -- http [--clients=1,16,256,1000] [--seconds=30] [--quick]

The whole server (assay serve, the starter model) under clients that send decide, extract and chat requests, each one after another.
The clients run on the same machine, in a process of their own; a third process measures refusals and /health, and does nothing else.`;

/** Milliseconds of load before the measurement begins. */
const WARM_UP_MS = 2_000;
/** Number of clients that start per second. A slow start keeps an initial rush out of the measurement. */
const ARRIVALS_PER_SECOND = 200;
/** Milliseconds for which a rush is measured, in which all clients start at once with one request each. */
const RUSH_MS = 100;

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
  const ms = 1000 * Number(values.seconds ?? (values.quick ? 3 : 30));
  const server = await startServer();
  let from = 0;
  const crowd = async (clients: number, ms: number) => {
    const arriveMs = Math.max(500, (1000 * clients) / ARRIVALS_PER_SECOND);
    const measured = await observed(server, { url: server.url, clients, arriveMs, ms, from });
    from += measured.crowd.asked;
    return measured;
  };
  try {
    await crowd(2, WARM_UP_MS);
    for (const clients of levels) {
      const name = clients === 1 ? '1 client' : `${clients} clients`;
      reportLevel(name, await crowd(clients, ms), ms / 1000, report);
    }
    const most = Math.max(...levels);
    const logEnd = server.logEnd();
    const rush = await runCrowd({ url: server.url, clients: most, arriveMs: 0, ms: RUSH_MS, from }).report;
    reportClients(`${most} in one moment`, rush, report);
    reportInside(`${most} in one moment`, server.logged(logEnd), report);
  } finally {
    await server.stop();
  }
}

interface Measured {
  crowd: CrowdReport;
  probes: Probe[];
  logged: LoggedRequest[];
  /** Peak of the resident memory of server and engine process together, in bytes. */
  memory: number;
  /** Mean number of processor cores that each process keeps busy during the measurement. */
  cores: { server: number; engine: number; clients: number };
}

function runCrowd(work: CrowdWork): { pid: number; report: Promise<CrowdReport> } {
  const child = fork(fileURLToPath(new URL('crowd.ts', import.meta.url)));
  child.send(work);
  return { pid: child.pid!, report: once(child, 'message').then(([report]) => report as CrowdReport) };
}

/** Runs a crowd of clients. Meanwhile measures the server's memory, its processor time and its answers to probes. */
async function observed(server: ServerProcess, work: CrowdWork): Promise<Measured> {
  const clients = runCrowd(work);
  await new Promise((resolve) => setTimeout(resolve, work.arriveMs));
  const [pid, ...engine] = server.pids() as [number, ...number[]];
  const seconds = () => [[pid], engine, [clients.pid]].map((pids) => total(pids, processorSeconds));
  const before = { seconds: seconds(), at: performance.now(), log: server.logEnd() };
  let memory = 0;
  const sampling = setInterval(() => {
    memory = Math.max(memory, total([pid, ...engine], residentBytes));
  }, 250);
  const probes = await probe(server.url, work.ms, AbortSignal.timeout(work.ms));
  const elapsed = (performance.now() - before.at) / 1000;
  const [ofServer, ofEngine, ofClients] = seconds().map((now, i) => (now - at(before.seconds, i)) / elapsed);
  const logged = server.logged(before.log);
  const crowd = await clients.report;
  clearInterval(sampling);
  return { crowd, probes, logged, memory, cores: { server: ofServer!, engine: ofEngine!, clients: ofClients! } };
}

function total(pids: readonly number[], of: (pid: number) => number): number {
  return pids.reduce((sum, pid) => sum + of(pid), 0);
}

function reportLevel(name: string, measured: Measured, seconds: number, report: Report): void {
  const { crowd, probes, logged, memory, cores } = measured;
  const { say: sayOf, times: timesOf } = reporter(name, report);
  reportClients(name, crowd, report, seconds);

  const seen = timesOf('one caller apart');
  seen('refusal for load', probes.filter(isRefusal));
  seen('refusal of a wrong key', probes.filter(isOf('bad key')));
  seen('refusal of a bad body', probes.filter(isOf('bad body')));
  seen('health', probes.filter(isOf('health')));

  reportInside(name, logged, report);
  const machine = sayOf('of the machine');
  machine('memory, most', memory / 2 ** 20, 'MiB');
  machine('the server', cores.server, 'cores');
  machine('its engine process', cores.engine, 'cores');
  machine('the clients', cores.clients, 'cores');
}

/** Reports the figures of the clients. Reports rates only if `seconds`, the duration of the crowd, is given. */
function reportClients(name: string, { outcomes, late }: CrowdReport, report: Report, seconds?: number): void {
  const [say, times] = [reporter(name, report).say('the clients'), reporter(name, report).times('the clients')];
  const answered = outcomes.filter(({ status }) => status === 200);
  const refused = outcomes.filter(isRefusal);
  if (seconds !== undefined) {
    say('requests answered', answered.length / seconds, '1/s');
    say('refused for load', refused.length / seconds, '1/s');
  }
  say('failed otherwise', outcomes.length - answered.length - refused.length, 'requests');
  times('answer', answered);
  for (const kind of ['decide', 'extract', 'chat'] as const) times(kind, answered.filter(isOf(kind)));
  times('refusal for load', refused);
  say('late for their own timers, p99', late.p99, 'ms');
}

function reportInside(name: string, logged: readonly LoggedRequest[], report: Report): void {
  const times = reporter(name, report).times('inside the server');
  times('refusal for load', logged.filter(isRefusal));
  const of = (metric: string, status: number) =>
    times(
      metric,
      logged.filter((one) => one.status === status),
    );
  of('refusal of a wrong key', 401);
  of('refusal of a bad body', 400);
}

function reporter(name: string, report: Report) {
  const say = (system: string) => (metric: string, value: number, unit: string) =>
    report({ system, case: name, metric, value, unit });
  const times = (system: string) => (metric: string, some: readonly { ms: number }[]) => {
    if (some.length === 0) return;
    const sorted = some.map(({ ms }) => ms).sort((one, other) => one - other);
    say(system)(`${metric}, p50`, quantile(sorted, 0.5), 'ms');
    say(system)(`${metric}, p99`, quantile(sorted, 0.99), 'ms');
  };
  return { say, times };
}

function isRefusal({ status }: { status: number }): boolean {
  return status === 429 || status === 503;
}

function isOf(kind: Outcome['kind'] | Probe['kind']): (one: { kind: string }) => boolean {
  return (one) => one.kind === kind;
}
