import type { Batches, Page, PageRequest } from '../lib/contract/batches.ts';
import { AssayError } from '../lib/errors.ts';
import type { CreateBatchRequest } from '../lib/schema/batches.ts';
import { CreateBatchRequest as Schema } from '../lib/schema/batches.ts';
import { readRequest } from './body.ts';
import type { AppContext, AppHandler, Services } from './context.ts';

/* Handlers of `/v1/files` and `/v1/batches`, which exist only where the server keeps batches. */

type Handle = (batches: Batches, owner: string, c: AppContext) => Response | Promise<Response>;

/** Returns the handler of a route of files and batches; undefined if the server keeps none. */
function withBatches(handle: Handle): (services: Services) => AppHandler | undefined {
  return ({ batches }) => batches && (async (c) => handle(batches, c.get('key')?.name ?? '', c));
}

export const uploadFile = withBatches(async (batches, owner, c) => c.json(await batches.upload(owner, c.req.raw)));

export const listFiles = withBatches((batches, owner, c) => {
  const page = batches.files(owner, { ...pageOf(c, 10_000), purpose: c.req.query('purpose') });
  return c.json(listOf(page));
});

export const retrieveFile = withBatches((batches, owner, c) => c.json(batches.file(owner, idOf(c))));

export const fileContent = withBatches((batches, owner, c) => {
  const { bytes } = batches.file(owner, idOf(c));
  const headers = { 'content-type': 'application/octet-stream', 'content-length': String(bytes) };
  return new Response(batches.content(owner, idOf(c)), { headers });
});

export const deleteFile = withBatches(async (batches, owner, c) => {
  const id = idOf(c);
  await batches.deleteFile(owner, id);
  return c.json({ id, object: 'file', deleted: true });
});

export const createBatch = withBatches(async (batches, owner, c) => {
  const sent: CreateBatchRequest = await readRequest(c, Schema);
  const key = c.req.header('idempotency-key');
  if (key !== undefined && !/^[\x21-\x7e]{1,128}$/.test(key)) {
    throw new AssayError('invalid_value', 'The header Idempotency-Key must have 1 to 128 visible ASCII characters.', {
      param: 'idempotency-key',
    });
  }
  return c.json(batches.create(owner, sent, key));
});

export const listBatches = withBatches((batches, owner, c) => c.json(listOf(batches.batches(owner, pageOf(c, 100)))));

export const retrieveBatch = withBatches((batches, owner, c) => c.json(batches.batch(owner, idOf(c))));

export const cancelBatch = withBatches((batches, owner, c) => c.json(batches.cancel(owner, idOf(c))));

function idOf(c: AppContext): string {
  return c.req.param('id') ?? '';
}

/** Returns the part of a list that a request asks for. */
function pageOf(c: AppContext, most: number): PageRequest {
  const sent = c.req.query('limit');
  const limit = sent === undefined ? Math.min(20, most) : Number(sent);
  if (!Number.isInteger(limit) || limit < 1 || limit > most) {
    throw new AssayError('invalid_value', `limit must be a whole number from 1 to ${most}.`, { param: 'limit' });
  }
  const order = c.req.query('order');
  return { after: c.req.query('after'), limit, order: order === 'asc' ? 'asc' : 'desc' };
}

function listOf<T extends { id: string }>({ data, more }: Page<T>): object {
  return {
    object: 'list',
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: more,
  };
}
