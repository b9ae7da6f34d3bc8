import type { Call, OpenSystem, Reply, Settings } from './system.ts';

// Runs one system in its own process: `node child.ts <module> <settings as JSON>`. The parent process sends calls as
// messages, one at a time.
const [module, settings] = process.argv.slice(2) as [string, string];
const { open }: { open: OpenSystem } = await import(module);
const system = await open(JSON.parse(settings) as Settings);
const say = (reply: Reply) => process.send!(reply);

process.on('message', async ([name, work]: Call) => {
  try {
    const call = system[name] as ((work: unknown) => Promise<unknown>) | undefined;
    if (!call) throw new Error(`no ${name}`);
    say({ result: await call(work) });
  } catch (error) {
    say({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  }
});
process.on('disconnect', () => process.exit(0));
say({ result: 'ready' });
