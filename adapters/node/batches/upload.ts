import { Readable, Transform } from 'node:stream';
import busboy from '@fastify/busboy';
import { AssayError } from '../../../lib/errors.ts';
import { ExpiresAfter } from '../../../lib/schema/batches.ts';
import { validate } from '../../../lib/validation/validate.ts';

/** Maximum size of an uploaded file, as OpenAI allows it. */
export const MOST_FILE_BYTES = 200_000_000;
/** Maximum size of what a body has beside the file. */
const MOST_OTHER_BYTES = 65_536;
const MOST_NAME_LENGTH = 255;

/** Describes an uploaded file. */
export interface Upload {
  filename: string;
  bytes: number;
  /** Seconds after which it expires; absent: never, or that of its purpose. */
  expiresAfter?: number;
}

/**
 * Reads a `multipart/form-data` body with a file of the purpose `batch`, whose content `write` stores while it arrives.
 *
 * @throws AssayError `unsupported_media_type`, `malformed_json`, `missing_field`, `invalid_value` or
 *   `request_too_large` if the body is not such a file
 */
export async function readUpload(
  request: Request,
  write: (content: AsyncIterable<Uint8Array>, limit: Transform) => Promise<void>,
): Promise<Upload> {
  const type = request.headers.get('content-type') ?? '';
  if (!/^multipart\/form-data\s*;/i.test(type) || !request.body) {
    throw new AssayError('unsupported_media_type', 'Send the file as multipart/form-data, with purpose and file.');
  }
  let bytes = 0;
  const limit = new Transform({
    transform(chunk: Buffer, _, done) {
      bytes += chunk.length;
      done(bytes > MOST_FILE_BYTES ? tooLarge() : null, chunk);
    },
  });
  const fields = new Map<string, string>();
  type Content = AsyncIterable<Uint8Array> & { destroy(error: Error): unknown };
  let file: { filename: string; content: Content; written: Promise<void> } | null = null;
  const parser = new busboy.Busboy({
    headers: { 'content-type': type },
    limits: { files: 1, fields: 16, fieldSize: 1024, fileSize: MOST_FILE_BYTES + 1, headerPairs: 32 },
  });
  parser.on('field', (name, value) => fields.set(name, value));
  parser.on('file', (name, stream, filename) => {
    if (name !== 'file') return stream.resume();
    const written = write(stream, limit);
    // It is awaited below; until then it must not count as unhandled.
    written.catch(() => stream.resume());
    file = { filename: filename || 'upload.jsonl', content: stream, written };
  });
  const source = Readable.fromWeb(request.body as Parameters<typeof Readable.fromWeb>[0]);
  let received = 0;
  source.on('data', ({ length }: Buffer) => {
    received += length;
    if (received > MOST_FILE_BYTES + MOST_OTHER_BYTES) source.destroy(tooLarge());
  });
  const broken = await new Promise<unknown>((resolve) => {
    parser.on('finish', () => resolve(null)).on('error', resolve);
    source.on('error', resolve);
    source.pipe(parser);
  });
  // The cast is needed because the assignment happens in a callback.
  const found = file as { filename: string; content: Content; written: Promise<void> } | null;
  if (broken) {
    const cause =
      broken instanceof AssayError
        ? broken
        : new AssayError('malformed_json', 'The body is not multipart/form-data that can be read.', { cause: broken });
    // Otherwise the file, of which no more comes, would stay open.
    found?.content.destroy(cause);
    await found?.written.catch(() => undefined);
    throw cause;
  }
  if (!found) throw new AssayError('missing_field', 'file is required.', { param: 'file' });
  await found.written;
  if (found.filename.length > MOST_NAME_LENGTH) {
    throw new AssayError('invalid_value', `The name of the file must have at most ${MOST_NAME_LENGTH} characters.`, {
      param: 'file',
    });
  }
  if (fields.get('purpose') !== 'batch') {
    throw new AssayError('invalid_value', 'purpose must be batch.', { param: 'purpose' });
  }
  const [anchor, seconds] = [fields.get('expires_after[anchor]'), fields.get('expires_after[seconds]')];
  if (anchor === undefined && seconds === undefined) return { filename: found.filename, bytes };
  const expires = validate(ExpiresAfter, { anchor: anchor ?? null, seconds: Number(seconds) });
  return { filename: found.filename, bytes, expiresAfter: expires.seconds };
}

function tooLarge(): AssayError {
  return new AssayError('request_too_large', `A file may have at most ${MOST_FILE_BYTES} bytes. Split it.`, {
    param: 'file',
  });
}
