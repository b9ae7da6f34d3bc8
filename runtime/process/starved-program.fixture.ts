/**
 * Source of a program that sends its parent a message after 30 bursts of 10 ms of processor time, which take 1.5 s or
 * more, as on a machine with more work than processors.
 */
export const STARVED_PROGRAM = `
let left = 30;
(function burst() {
  const before = process.cpuUsage();
  while (process.cpuUsage(before).user + process.cpuUsage(before).system < 10_000);
  if (--left > 0) setTimeout(burst, 50);
  else process.send({ works: true });
})()`;
