import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
export const CLIENTS = fileURLToPath(new URL('..', import.meta.url));
/** The folder of the packages. */
export const DIST = `${CLIENTS}dist`;
/** The folder of the generators' input, and of downloaded tools. */
export const WORK = `${CLIENTS}.work`;
