import { join } from 'node:path';
import { InferenceSession } from 'onnxruntime-node';
import type { Manifest, StaticGraphs } from '../../../compile/manifest.ts';
import { OrtEnvironment } from '../../../ort-plugin/environment.ts';
import { openDevice } from '../../../ort-plugin/open-device.ts';
import { PluginSession } from '../../../ort-plugin/plugin-session.ts';
import type { PluginTarget } from '../../../ort-plugin/plugin-target.ts';
import type { StaticSessions } from './static-forward.ts';

export interface OpenStaticOptions {
  /** Device and plugin that run the layers and the head. Default: onnxruntime's CPU provider. */
  plugin?: PluginTarget;
  threads?: number;
  /** Options of the session that looks up embeddings. Without a plugin, the other sessions also use its `extra`. */
  lookup: InferenceSession.SessionOptions;
}

/**
 * Opens a session for every static graph of the compiled model in `folder`. If one fails to open, closes the others and
 * throws its error.
 */
export async function openStatic(
  folder: string,
  manifest: Manifest,
  graphs: StaticGraphs,
  { plugin, threads, lookup }: OpenStaticOptions,
): Promise<{ sessions: StaticSessions; close(): Promise<void> }> {
  const closing: Closing = [];
  const close = async (): Promise<void> => {
    for (const one of closing.splice(0).reverse()) await one();
  };
  try {
    const tables = await InferenceSession.create(join(folder, manifest.graph), lookup);
    closing.push(() => tables.release());
    const session = plugin ? await onDevice(plugin, closing) : await onCpu(threads, lookup, closing);
    const open = async (graph: string): Promise<PluginSession> => {
      const opened = await session(join(folder, graph));
      closing.push(() => opened.release());
      return opened;
    };
    // Bodies of several shapes may share a graph, and then a session.
    const byGraph = new Map<string, PluginSession>();
    for (const { graph } of graphs.bodies) if (!byGraph.has(graph)) byGraph.set(graph, await open(graph));
    const bodies = graphs.bodies.map(({ graph }) => byGraph.get(graph)!);
    return { sessions: { lookup: tables, bodies, head: await open(graphs.head.graph) }, close };
  } catch (error) {
    await close();
    throw error;
  }
}

type Closing = (() => void | Promise<void>)[];
type OpenSession = (file: string) => Promise<PluginSession>;

async function onDevice(plugin: PluginTarget, closing: Closing): Promise<OpenSession> {
  const device = await openDevice(plugin);
  closing.push(() => device.close());
  return (file) => device.session(file);
}

async function onCpu(
  threads: number | undefined,
  { extra = {} }: InferenceSession.SessionOptions,
  closing: Closing,
): Promise<OpenSession> {
  const env = await OrtEnvironment.open();
  closing.push(() => env.release());
  const config = Object.fromEntries(entriesOf(extra));
  return (file) => PluginSession.create(env, file, { config, ...(threads ? { threads } : {}) });
}

/**
 * Flattens a session configuration for onnxruntime's C API: `{ session: { intra_op: { a: '1' } } }` becomes
 * `session.intra_op.a`.
 */
function entriesOf(extra: object): [key: string, value: string][] {
  return Object.entries(extra).flatMap(([key, value]): [string, string][] =>
    typeof value === 'object' && value !== null
      ? entriesOf(value).map(([rest, text]) => [`${key}.${rest}`, text])
      : [[key, String(value)]],
  );
}
