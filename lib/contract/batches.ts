import type { Batch, CreateBatchRequest, FileObject } from '../schema/batches.ts';

/** Describes a part of a list: the items after one (`after`), newest first unless `order` is `asc`. */
export interface PageRequest {
  after?: string | undefined;
  limit: number;
  order?: 'asc' | 'desc' | undefined;
}

export interface Page<T> {
  data: T[];
  more: boolean;
}

/**
 * Stores files of requests, and answers them in the background. Every file and batch belongs to the key that made it
 * (`owner`): for another key, it does not exist. Methods throw `not_found` for an id that the owner does not have.
 */
export interface Batches {
  /** Stores the file of a `multipart/form-data` body. Throws if it is too large, or if the owner has too many. */
  upload(owner: string, request: Request): Promise<FileObject>;
  files(owner: string, page: PageRequest & { purpose?: string | undefined }): Page<FileObject>;
  file(owner: string, id: string): FileObject;
  content(owner: string, id: string): ReadableStream<Uint8Array>;
  deleteFile(owner: string, id: string): Promise<void>;
  /**
   * Begins a batch, unless one was begun with the same idempotency key. Throws `operation_in_progress` if that one had
   * another request, and `rate_limited` if the owner has too many open batches.
   */
  create(owner: string, request: CreateBatchRequest, idempotencyKey?: string): Batch;
  batches(owner: string, page: PageRequest): Page<Batch>;
  batch(owner: string, id: string): Batch;
  cancel(owner: string, id: string): Batch;
}
