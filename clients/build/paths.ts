import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
export const CLIENTS = fileURLToPath(new URL('..', import.meta.url));
/** Where the packages end up. */
export const DIST = `${CLIENTS}dist`;
/** What the generators read, and tools that are fetched. */
export const WORK = `${CLIENTS}.work`;
