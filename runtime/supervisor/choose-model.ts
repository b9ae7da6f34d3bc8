import type { AnswerShape } from '../../lib/contract/answer-shape.ts';
import type { ModelCapabilities } from '../../lib/schema/model-list.ts';
import { MOST_OPTIONS } from '../../lib/schema/question-fields.ts';
import { fieldsOfShape } from '../encoder/contracts/span-shape.ts';
import type { ModelInfo, Work } from '../protocol/messages.ts';
import { mediaOfWork } from './media/open-media.ts';

/** Lists the abilities of every model that generates text. */
const GENERATES = { decide: 'any', extract: 'schema', chat: true, abstains: false, max_options: MOST_OPTIONS } as const;

/** Returns what a loaded model can do. */
export function capabilitiesOf({ maxPromptLen, capabilities }: ModelInfo): ModelCapabilities {
  return capabilities ?? { ...GENERATES, max_tokens: maxPromptLen };
}

/**
 * Chooses the model that answers a request that names none: the only one, or else one that can answer all of it. Among
 * several of these, a model that was made for decisions goes before one that chats, and the one that was loaded last
 * before the others. If none can answer, the one that was loaded last says why not.
 *
 * @param loaded the models in memory, that which was loaded last first
 */
export function chooseModel<M extends { info: ModelInfo | null }>(work: Work, loaded: readonly M[]): M | undefined {
  if (loaded.length < 2) return loaded[0];
  const known = loaded.flatMap((model) => (model.info ? [{ model, can: capabilitiesOf(model.info) }] : []));
  const able = known.filter(({ can, model }) => canAnswer(can, work) && readsMedia(model.info, work));
  return (able.find(({ can }) => !can.chat) ?? able[0])?.model ?? loaded[0];
}

function canAnswer({ chat, decide, extract, max_options }: ModelCapabilities, work: Work): boolean {
  if (work.kind === 'chat') return chat;
  return work.batch.tasks.every((task) => {
    // A model that finds spans answers what is quoted from the input, if it can find all of it.
    if (task.type === 'extract') {
      return extract === 'schema' || (extract === 'spans' && task.verbatim === true && findsAll(task.shape));
    }
    if (decide === 'any') return true;
    // Decision models give no reasons.
    return task.options !== undefined && task.options.length <= max_options && !task.instruction?.trim();
  });
}

function findsAll(shape: AnswerShape): boolean {
  try {
    return fieldsOfShape(shape, { structures: true }).length > 0;
  } catch {
    return false;
  }
}

function readsMedia(info: ModelInfo | null, work: Work): boolean {
  return mediaOfWork(work).every(({ type }) => type === info?.reads);
}
