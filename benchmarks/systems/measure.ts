export interface Cost {
  /** Milliseconds of wall time. */
  ms: number;
  /** Milliseconds of processor time, all threads together: comparable even when others use the machine. */
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
