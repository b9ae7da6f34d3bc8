import { parentPort } from 'node:worker_threads';
import { readBodyOf } from '../../handlers/routes.ts';
import { AssayError } from '../../lib/errors.ts';
import type { CheckedBody, SentBody } from './body-thread.ts';

/* The thread of `BodyThread`: compiles the schemas of one body after the other. */

parentPort?.on('message', ({ path, text }: SentBody) => parentPort?.postMessage(check(path, text)));

function check(path: string, text: string): CheckedBody {
  try {
    readBodyOf(path, text);
    return {};
  } catch (error) {
    // Any other error is thrown again where the body is read.
    if (!(error instanceof AssayError)) return {};
    const { code, message, param } = error;
    return { refusal: { code, message, ...(param === undefined ? {} : { param }) } };
  }
}
