import { cpus, freemem, totalmem } from 'node:os';
import type { Command } from 'commander';
import { DEVICE_CHOICES } from '../../../runtime/device/device-table.ts';
import { examineDevices } from '../../../runtime/device/doctor.ts';
import { listAccelerators } from '../../../runtime/device/hardware.ts';
import { probeProvider } from '../../../runtime/device/probe.ts';
import { formatBytes } from '../../../runtime/store/disk-error.ts';
import { UsageError } from '../usage-error.ts';
import { EXIT } from './exit-code.ts';
import { screen } from './screen.ts';

/** `assay doctor` */
export function addDoctor(program: Command): void {
  program
    .command('doctor')
    .description('Examine the devices of this machine: what works, what does not, why, and what would change that.')
    .option('--json', 'print the findings as JSON')
    .addHelpText('after', DOCTOR_HELP)
    .action(async ({ json }: { json?: boolean }) => {
      const choice = DEVICE_CHOICES.find((one) => one === (process.env.ASSAY_DEVICE || 'auto'));
      if (!choice) throw new UsageError(`ASSAY_DEVICE is one of ${DEVICE_CHOICES.join(', ')}.`);
      const platform = `${process.platform}-${process.arch}`;
      const devices = await examineDevices({
        platform,
        choice,
        accelerators: await listAccelerators(),
        probe: probeProvider,
      });
      const processors = cpus();
      const machine = {
        platform,
        node: process.version,
        cpu: processors[0]?.model.trim() ?? 'unknown',
        threads: processors.length,
        memory_bytes: totalmem(),
        free_memory_bytes: freemem(),
      };
      if (json) screen.json({ machine, devices });
      else {
        screen.line(`${machine.platform}, Node ${machine.node}, ${machine.cpu}, ${machine.threads} threads,`);
        screen.line(`${formatBytes(machine.memory_bytes)} of memory, ${formatBytes(machine.free_memory_bytes)} free`);
        for (const { device, name, state, why, command } of devices) {
          screen.line(`\n${device}  ${name}: ${state}\n     ${why}`);
          if (command) screen.line(`     → ${command}`);
        }
      }
      if (!devices.some(({ state }) => state === 'in use')) process.exitCode = EXIT.no;
    });
}

const DOCTOR_HELP = `
Each device is tried with a small computation, in a process of its own. Exit code 1 where none works.

Example:
  $ assay doctor --json | jq '.devices[] | select(.state == "in use")'`;
