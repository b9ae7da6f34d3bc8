import type { Row } from './row.ts';
import { anyRequest } from './rows/any-request.ts';

/** All tables, by name. A new table is added here and nowhere else. */
export const tables: Record<string, readonly Row[]> = {
  'any request': anyRequest,
};
