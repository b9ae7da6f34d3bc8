/*
 * A media process whose decoder does what the file says: hang, crash, or answer. Messages are as in
 * `runtime/media/messages.ts`.
 */
process.on('message', ({ id, bytes }: { id: number; bytes: Uint8Array }) => {
  const told = Buffer.from(bytes).toString();
  if (told === 'crash') process.kill(process.pid, 'SIGSEGV');
  for (; told === 'hang'; );
  process.send?.({ type: 'size', id, width: 1, height: 1 });
});
process.on('disconnect', () => process.exit(0));
