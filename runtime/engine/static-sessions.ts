import { join } from 'node:path';
import { InferenceSession } from 'onnxruntime-node';
import type { Manifest, StaticGraphs } from '../compile/manifest.ts';
import { OrtEnvironment } from '../ort-plugin/environment.ts';
import { PluginSession } from '../ort-plugin/plugin-session.ts';
import type { StaticSessions } from './static-forward.ts';

export interface OpenStaticOptions {
  threads?: number;
  /** Options of the session that looks up embeddings on the CPU. */
  lookup: InferenceSession.SessionOptions;
}

/** Opens every graph of a model over fixed shapes. What was opened is closed again when one fails. */
export async function openStatic(
  folder: string,
  manifest: Manifest,
  graphs: StaticGraphs,
  { threads, lookup }: OpenStaticOptions,
): Promise<{ sessions: StaticSessions; close(): Promise<void> }> {
  const closing: (() => void | Promise<void>)[] = [];
  const close = async (): Promise<void> => {
    for (const one of closing.splice(0).reverse()) await one();
  };
  try {
    const tables = await InferenceSession.create(join(folder, manifest.graph), lookup);
    closing.push(() => tables.release());
    const env = await OrtEnvironment.open();
    closing.push(() => env.release());
    const open = async (graph: string): Promise<PluginSession> => {
      const session = await PluginSession.create(env, join(folder, graph), threads ? { threads } : {});
      closing.push(() => session.release());
      return session;
    };
    const bodies: PluginSession[] = [];
    for (const { graph } of graphs.bodies) bodies.push(await open(graph));
    return { sessions: { lookup: tables, bodies, head: await open(graphs.head.graph) }, close };
  } catch (error) {
    await close();
    throw error;
  }
}
