import type { TestEdge } from './edge.ts';

export { eventsOf } from '../conformance/send.ts';

export const headers = { authorization: 'Bearer test-key', 'content-type': 'application/json' };

export const post = (edge: TestEdge, path: string, body: unknown, init: RequestInit & { edge?: number } = {}) =>
  fetch(`${edge.urls[init.edge ?? 0]}${path}`, {
    method: 'POST',
    ...init,
    headers: { ...headers, ...init.headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });

/** Builds one question about a context. */
export const question = (context: string) => ({
  model: 'assay/starter',
  context,
  tasks: [{ type: 'decide', name: 'due', question: 'Is it due?', options: ['yes', 'no'] }],
});

export const chat = (text: string, stream = true) => ({
  model: 'assay/starter',
  messages: [{ role: 'user', content: text }],
  stream,
});

export async function errorCode(response: Response): Promise<string> {
  const { error } = (await response.json()) as { error: { code: string } };
  return error.code;
}
