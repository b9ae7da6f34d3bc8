import { at } from '../at.ts';
import { audioSource } from '../chat/messages.ts';
import type { MediaKind, MediaPart } from '../contract/conversation.ts';
import { entriesAsWritten } from '../json/written-numbers.ts';
import { pathTo } from '../param-path.ts';
import type { DecisionAudio, DecisionImage } from '../schema/decisions-request.ts';

/**
 * Converts an image or audio part of a request to a `MediaPart`. `path` is the part's path in the request, for errors.
 */
export function mediaPart(part: DecisionImage | DecisionAudio, path: string): MediaPart {
  if (part.type === 'input_audio') {
    const { input_audio, audio_url } = part;
    if (input_audio) return { type: 'audio', source: audioSource(input_audio), param: `${path}.input_audio` };
    // The schema requires one of the two.
    return { type: 'audio', source: { type: 'url', url: audio_url! }, param: `${path}.audio_url` };
  }
  const { image_url: url, detail } = part;
  const known = detail === 'low' || detail === 'high' || detail === 'auto';
  return { type: 'image', source: { type: 'url', url }, param: `${path}.image_url`, ...(known ? { detail } : {}) };
}

/**
 * Converts media of a System One request to parts of one type. Each item may have any form that such servers accept: a
 * string (a URL or base64), or an object that contains one.
 *
 * @param param returns the path of the item at an index in the request, for errors
 */
export function mediaParts(type: MediaKind, items: readonly unknown[], param: (i: number) => string): MediaPart[] {
  return items.map((item, i) => ({ type, source: sourceOf(type, item), param: param(i) }));
}

/** Converts the images of a request by name, in the order sent. */
export function assetParts(assets: Readonly<Record<string, unknown>> | null | undefined): MediaPart[] {
  const named = entriesAsWritten(assets ?? {});
  return mediaParts(
    'image',
    named.map(([, asset]) => asset),
    (i) => pathTo('assets', at(named, i)[0]),
  );
}

function sourceOf(type: MediaKind, item: unknown): MediaPart['source'] {
  // `Object` converts any value to an object; the members are checked below.
  const { url, base64, data_base64: bare, content_type: full, format } = Object(item) as Record<string, unknown>;
  const text = [item, url, base64, bare].find((one): one is string => typeof one === 'string') ?? '';
  if (/^(data:|https?:)/i.test(text)) return { type: 'url', url: text };
  const mimeType = typeof full === 'string' ? full : `${type}/${typeof format === 'string' ? format : '*'}`;
  return { type: 'base64', data: text, mimeType };
}
