import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
export const CLIENTS = fileURLToPath(new URL('..', import.meta.url));
/** Folder of the built packages. */
export const DIST = `${CLIENTS}dist`;
/** Folder for the generators' input and for downloaded tools. */
export const WORK = `${CLIENTS}.work`;
