const SOURCE = /^(?:handlers|lib|runtime|adapters)\/(?!.*\.(?:test|fixture)\.tsx?$).*\.tsx?$/;
const EXPORTED =
  /^export (?:declare )?(?:async )?(?:function\*?|const|let|class|abstract class|interface|type|enum) (\w+)/gm;

/** Folders that say the same thing in two forms: the public one and that which the code passes on. */
const FORMS = ['lib/schema/', 'lib/contract/'];
/** The entry of the Worker gives its Durable Objects the types that the host needs. */
const ENTRY = 'adapters/workers/index.ts';

/** Finds names that two files export: each name has one meaning in the whole source. */
export class ExportedNames {
  readonly #files = new Map<string, Set<string>>();

  add(file: string, source: string): void {
    if (!SOURCE.test(file) || file === ENTRY) return;
    for (const [, name = ''] of source.matchAll(EXPORTED)) {
      const files = this.#files.get(name) ?? new Set();
      this.#files.set(name, files.add(file));
    }
  }

  violations(): string[] {
    return [...this.#files].flatMap(([name, found]) => {
      const files = [...found].sort();
      const forms = files.map((file) => FORMS.find((folder) => file.startsWith(folder)) ?? file);
      const twoForms = files.length === 2 && forms.every((form) => FORMS.includes(form)) && new Set(forms).size === 2;
      return files.length < 2 || twoForms
        ? []
        : [`${name} is exported by ${files.join(' and ')}: give one another name`];
    });
  }
}
