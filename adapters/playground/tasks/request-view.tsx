import { useState } from 'preact/hooks';
import { LANGUAGES, type Language, requestCode } from './request-code.ts';

/** Shows the request as code that the user can copy. */
export function RequestView({ path, body }: { path: string; body: unknown }) {
  const [language, setLanguage] = useState<Language>('curl');
  const [copied, setCopied] = useState(false);
  const code = requestCode(language, location.origin, path, body);
  const copy = async () => {
    await navigator.clipboard.writeText(code);
    setCopied(true);
    setTimeout(() => setCopied(false), 1_500);
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
            onChange={(event) => setLanguage(event.currentTarget.value as Language)}
          >
            {LANGUAGES.map((name) => (
              <option value={name}>{name}</option>
            ))}
          </select>
        </label>
        <button type="button" onClick={copy}>
          {copied ? 'Copied' : 'Copy'}
        </button>
      </div>
      <section aria-label="Request as code">
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard has to reach it */}
        <pre tabIndex={0}>
          <code>{code}</code>
        </pre>
      </section>
    </details>
  );
}
