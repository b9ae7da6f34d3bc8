import { at } from '../../lib/at.ts';
import { readTestSet, type Text } from '../quality/test-set.ts';

export type Kind = 'decide' | 'extract' | 'chat';

export interface Asked {
  kind: Kind;
  path: string;
  body: string;
}

/** Token limit of a chat answer. */
const CHAT_TOKENS = 32;
/** Kinds of ten successive requests; the pattern repeats. */
const MIX: readonly Kind[] = [
  'decide',
  'extract',
  'decide',
  'chat',
  'decide',
  'extract',
  'decide',
  'chat',
  'extract',
  'decide',
];

/**
 * Returns a function that creates the i-th request of a run. Of ten requests, five decide, three extract and two are
 * chats, on the texts of the natural test set in turn. Each text contains a number, so no earlier run has left its
 * prefix in the cache.
 */
export async function requestMix(): Promise<(i: number) => Asked> {
  const texts = await readTestSet('natural');
  const having = (type: 'decide' | 'extract') => texts.filter(({ tasks }) => tasks.some((task) => task.type === type));
  const pools = { decide: having('decide'), extract: having('extract'), chat: texts };
  return (i) => {
    const kind = at(MIX, i % MIX.length);
    const pool = pools[kind];
    const text = at(pool, i % pool.length);
    const context = `Message ${Math.floor(i / pool.length) + 1}: ${text.context}`;
    return kind === 'chat' ? chat(context) : tasks(kind, context, text);
  };
}

function tasks(kind: 'decide' | 'extract', context: string, text: Text): Asked {
  const asked = text.tasks.filter(({ type }) => type === kind);
  const body = {
    model: 'assay/starter',
    context,
    max_output_tokens: 256,
    tasks: asked.map(({ expected: _, skill: __, ...task }, i) => ({ ...task, name: `t${i}` })),
  };
  return { kind, path: '/v1/tasks', body: JSON.stringify(body) };
}

function chat(context: string): Asked {
  const body = {
    model: 'assay/starter',
    messages: [{ role: 'user', content: `Say what this is about in a few words. ${context}` }],
    max_tokens: CHAT_TOKENS,
    temperature: 0,
  };
  return { kind: 'chat', path: '/v1/chat/completions', body: JSON.stringify(body) };
}
