import { useRef, useState } from 'preact/hooks';
import { CODE_LANGUAGES, type CodeLanguage, requestCode } from './request-code.ts';

/** Milliseconds for which the button shows that the code was copied. */
const COPIED_MS = 1_500;

/**
 * Copies a text. Browsers have a clipboard on https and on this machine only; elsewhere, this selects `shown`, which
 * displays the text. Resolves to true if the text was copied.
 */
export async function copyText(text: string, shown: HTMLElement | null): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    if (shown) getSelection()?.selectAllChildren(shown);
    return false;
  }
}

/** Shows the request as code that the user can copy. */
export function RequestView({ path, body }: { path: string; body: unknown }) {
  const [language, setLanguage] = useState<CodeLanguage>('curl');
  const [copied, setCopied] = useState<boolean | null>(null);
  const code = requestCode(language, location.origin, path, body);
  const shown = useRef<HTMLElement>(null);
  const copy = async () => {
    setCopied(await copyText(code, shown.current));
    setTimeout(() => setCopied(null), COPIED_MS);
  };
  return (
    <details class="request">
      <summary>Request as code</summary>
      <div class="row">
        <label for="code-language" class="narrow">
          Language
          <select
            id="code-language"
            value={language}
            onChange={(event) => setLanguage(event.currentTarget.value as CodeLanguage)}
          >
            {CODE_LANGUAGES.map((name) => (
              <option value={name}>{name}</option>
            ))}
          </select>
        </label>
        <button type="button" onClick={copy}>
          {copied === null ? 'Copy' : copied ? 'Copied' : 'Selected: press Ctrl + C'}
        </button>
      </div>
      <section aria-label="Request as code">
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard has to reach it */}
        <pre tabIndex={0}>
          <code ref={shown}>{code}</code>
        </pre>
      </section>
    </details>
  );
}
