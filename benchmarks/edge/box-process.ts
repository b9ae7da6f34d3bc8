import { startBox } from '../../tests/edge/box.ts';

// A box in a process of its own, so that it takes no time from the client that measures. Prints its address.
const box = await startBox('npu-1');
setInterval(() => box.play({}), 1_000);
console.log(box.url);
