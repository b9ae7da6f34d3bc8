import { createHash } from 'node:crypto';
import type { ChatMessage, MediaPart, Part } from '../../../lib/contract/conversation.ts';
import { splitDataUrl } from '../../../lib/data-url.ts';
import type { Work } from '../../protocol/messages.ts';

/** Returns the image and audio parts of a request: first those of `batch.media`, then those in messages. */
export function mediaOf(work: Work): MediaPart[] {
  const parts = messagesOf(work).flatMap((message) => message.parts);
  const inMessages = parts.filter((part): part is MediaPart => part.type !== 'text');
  return work.kind === 'tasks' ? [...work.batch.media, ...inMessages] : inMessages;
}

function messagesOf(work: Work): readonly ChatMessage[] {
  if (work.kind === 'chat') return work.request.messages;
  return 'messages' in work.batch.input ? work.batch.input.messages : [];
}

/** Returns a copy of the request in which `replace` has replaced each image or audio part. */
export function mapMedia(work: Work, replace: (part: MediaPart) => MediaPart): Work {
  const mapPart = (part: Part) => (part.type === 'text' ? part : replace(part));
  const messages = messagesOf(work).map((message) => ({ ...message, parts: message.parts.map(mapPart) }));
  if (work.kind === 'chat') return { kind: 'chat', request: { ...work.request, messages } };
  const { input, media } = work.batch;
  const mapped = 'messages' in input ? { messages } : input;
  return { kind: 'tasks', batch: { ...work.batch, input: mapped, media: media.map(replace) } };
}

/**
 * Returns a copy of the request for the log: base64 data and data: URLs are replaced by the file's size and SHA-256.
 */
export function withoutFiles(work: Work): Work {
  return mapMedia(work, (part) => {
    const { source } = part;
    if (source.type === 'url' && !/^data:/iu.test(source.url)) return part;
    const file = source.type === 'base64' ? source : splitDataUrl(source.url);
    // A data URL that cannot be split is refused later; the log does not show it.
    const { mimeType, data } = file ?? { mimeType: '', data: '' };
    const bytes = Buffer.from(data, 'base64');
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    return { ...part, source: { type: 'base64', mimeType, data: `${bytes.length} bytes, sha256 ${sha256}` } };
  });
}
