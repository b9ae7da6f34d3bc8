import type { ChatMessage } from '../../../lib/contract/conversation.ts';
import { AssayError } from '../../../lib/errors.ts';

/**
 * Returns a copy of an upstream's error about an image or a recording, in which `param` and the message have the path
 * of that input in the caller's request. That path differs from the one in the forwarded request if the edge forwards
 * it in another format. Returns any other error unchanged.
 *
 * @param pathThere matches the path in the forwarded request; captures the index of the message and that of its part
 */
export function withCallersParam(error: unknown, pathThere: RegExp, messages: readonly ChatMessage[]): unknown {
  if (!(error instanceof AssayError) || error.param === undefined) return error;
  const [there, message, index] = pathThere.exec(error.param) ?? [];
  const sent = messages[Number(message)]?.parts[Number(index)];
  if (there === undefined || sent === undefined || sent.type === 'text') return error;
  return new AssayError(error.code, error.message.replaceAll(there, sent.param), { param: sent.param });
}
