import { deserialize, serialize } from 'node:v8';

/** Bytes of a part: less than a channel holds, so that what comes after it is written at once. */
const PART_BYTES = 64 * 1024;

/** Holds a part of a long message. Parts with one id belong to one message, and come in order. */
export interface MessagePart {
  type: 'part';
  id: string;
  bytes: Uint8Array;
  /** True for the last part of a message. */
  last: boolean;
}

/** Cuts a message into parts, between which short messages may be sent. */
export function* partsOf(message: { id: string }): Generator<MessagePart, void> {
  const bytes = serialize(message);
  for (let at = 0; at < bytes.length; at += PART_BYTES) {
    const last = at + PART_BYTES >= bytes.length;
    yield { type: 'part', id: message.id, bytes: bytes.subarray(at, at + PART_BYTES), last };
  }
}

/** Joins the parts of messages of type `Message`. */
export class MessageParts<Message> {
  readonly #parts = new Map<string, Uint8Array[]>();

  /** Returns the message whose last part this is; undefined for its other parts. */
  add({ id, bytes, last }: MessagePart): Message | undefined {
    const parts = this.#parts.get(id) ?? [];
    parts.push(bytes);
    if (last) this.#parts.delete(id);
    else this.#parts.set(id, parts);
    // A cast: the server wrote the message.
    return last ? (deserialize(Buffer.concat(parts)) as Message) : undefined;
  }

  /** Drops the parts of a message, and tells whether there were some. */
  drop(id: string): boolean {
    return this.#parts.delete(id);
  }
}
