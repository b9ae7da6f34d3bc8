import { useState } from 'preact/hooks';
import { storedKey } from './api.ts';

/**
 * Lets the user enter the API key. The key is kept in the tab's session storage and sent only to this server. Calls
 * `onChange` when the user leaves the field after a change.
 */
export function KeyField({ onChange }: { onChange(): void }) {
  const [key, setKey] = useState(storedKey.get());
  return (
    <label class="key">
      <span>API key</span>
      <input
        id="api-key"
        type="password"
        autocomplete="off"
        spellcheck={false}
        placeholder="sk-assay-…"
        value={key}
        onInput={(event) => {
          const text = event.currentTarget.value.trim();
          setKey(text);
          storedKey.set(text);
        }}
        onChange={onChange}
      />
    </label>
  );
}
