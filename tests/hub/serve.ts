import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fixtureModel } from '../registry/machine.ts';
import { checkpointFiles } from './checkpoint.ts';
import { HubServer } from './hub-server.ts';
import { folderRepository, type HubRepository, hubRepository } from './repository.ts';

/*
 * A hub to try the command line against, without a network: `npm run dev:hub [-- bytes per second [folder]]`. It has
 * three tiny models with random weights, one of them a checkpoint without a graph, or those of a folder, each in
 * `namespace/name`. A running server has a hub of its own: pull with it stopped, or start it with the same HF_ENDPOINT.
 */
const [bytesPerSecond = 0, folder] = [Number(process.argv[2] ?? 0), process.argv[3]];
const models = await (folder ? modelsIn(folder) : tinyModels());
const hub = await HubServer.start(...models);
if (bytesPerSecond > 0) hub.fail({ on: 'content', fault: { kind: 'throttle', bytesPerSecond } });
console.log(`${hub.endpoint} has ${models.map(({ id }) => id).join(' and ')}. Try, in another terminal:`);
console.log(`HF_ENDPOINT=${hub.endpoint} npm run -s assay -- pull ${models[0]?.id}`);

function tinyModels(): Promise<HubRepository[]> {
  return Promise.all([
    fixtureModel('optimum/qwen3', 'acme/qwen3'),
    fixtureModel('genai/llama-int4', 'acme/llama'),
    checkpointFiles().then((files) => hubRepository('acme/checkpoint', files)),
  ]);
}

async function modelsIn(folder: string): Promise<HubRepository[]> {
  const ids: string[] = [];
  for (const namespace of await readdir(folder)) {
    for (const name of await readdir(join(folder, namespace))) ids.push(`${namespace}/${name}`);
  }
  return Promise.all(ids.map((id) => folderRepository(join(folder, id), id)));
}
