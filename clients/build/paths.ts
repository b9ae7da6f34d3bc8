import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
export const CLIENTS = fileURLToPath(new URL('..', import.meta.url));
/** Folder of the built packages. */
export const DIST = `${CLIENTS}dist`;
/** Folder of the generators' input and of downloaded tools. */
export const WORK = `${CLIENTS}.work`;
