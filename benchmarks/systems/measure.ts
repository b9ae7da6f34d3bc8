export interface Cost {
  /** Milliseconds of wall time. */
  ms: number;
  /** Processor time of all threads in milliseconds. Other work on the machine hardly changes it. */
  cpuMs: number;
}

export async function measure<T>(work: () => Promise<T>): Promise<Cost & { result: T }> {
  const cpu = process.cpuUsage();
  const began = performance.now();
  const result = await work();
  const ms = performance.now() - began;
  const { user, system } = process.cpuUsage(cpu);
  return { result, ms, cpuMs: (user + system) / 1000 };
}
