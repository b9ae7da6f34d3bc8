import { messageOf } from '../../lib/errors.ts';
import { parseModelId } from '../../lib/model-id.ts';
import type { ModelHost } from '../../lib/models/host.ts';
import { downloadBytes, type RecommendedModel } from '../../lib/models/recommended-models.ts';

/** Asks the person at the terminal that a server was started from. */
export interface Terminal {
  /** Resolves to the next key that is pressed. */
  key(): Promise<string>;
  /** Tells whether the hub answers, so that a download can succeed. */
  online(): Promise<boolean>;
}

/** Key that accepts the offer. */
const ACCEPT = 'd';

/**
 * Offers a model to the person at the terminal, for one key; if it is pressed, downloads and loads the model. Without a
 * network it says nothing. Never rejects: a failure is said.
 */
export async function offerModel(
  model: RecommendedModel,
  { key, online }: Terminal,
  { host, say }: { host: Pick<ModelHost, 'download' | 'load'>; say(text: string): void },
): Promise<void> {
  const id = parseModelId(model.id);
  const facts = `${(downloadBytes(model) / 1e9).toFixed(1)} GB, ${model.licence}`;
  try {
    if (!(await online())) return;
    say(`Press ${ACCEPT} to download and load ${id} (${facts}); any other key leaves it.`);
    if ((await key()).toLowerCase() !== ACCEPT) return;
    let tenths = 0;
    for await (const event of host.download(id, { allowDownload: true })) {
      if (event.type !== 'progress' || event.stage !== 'downloading' || !event.total) continue;
      const done = Math.floor((10 * event.bytes) / event.total);
      if (done > tenths) say(`${id}: ${10 * done}% downloaded`);
      tenths = Math.max(tenths, done);
    }
    // The bundled model stays: a decision model extracts nothing and does not chat.
    const { load_ms } = await host.load(id, { keepOthers: true, evict: true });
    say(`${id} is loaded after ${(load_ms / 1000).toFixed(1)} s, beside the others: requests may name it.`);
  } catch (error) {
    say(`${id} is not loaded. ${messageOf(error)}`);
  }
}
