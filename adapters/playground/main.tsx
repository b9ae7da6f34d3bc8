import { type ComponentType, render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { storedKey } from './api.ts';
import { ChatTab } from './chat/chat-tab.tsx';
import { ModelsTab } from './models/models-tab.tsx';
import { Problem } from './problem.tsx';
import { type Status, useAbilities, useStatus } from './status.ts';
import { TasksTab } from './tasks/tasks-tab.tsx';

const TABS = ['Tasks', 'Chat', 'Evaluate', 'Models'] as const;
type Tab = (typeof TABS)[number];

function App() {
  const [tab, setTab] = useState<Tab>(tabOfHash());
  const { status, refresh } = useStatus();
  const { state, active_model: active = 'none' } = status.health ?? {};
  const model = active === 'none' ? '' : active;
  const abilities = useAbilities(model);
  // A tab for which the loaded model is of no use stays in its place, but cannot be opened.
  const noChat = abilities?.chat === false ? 'The loaded model answers questions and does not chat.' : undefined;
  useEffect(() => {
    const follow = () => setTab(tabOfHash());
    addEventListener('hashchange', follow);
    return () => removeEventListener('hashchange', follow);
  }, []);
  const open = (next: Tab) => {
    location.hash = next.toLowerCase();
    document.getElementById(`tab-${next}`)?.focus();
  };
  return (
    <>
      <header class="top">
        <h1>
          <img src="/playground/icon.svg" alt="" width="26" height="26" /> Assay
        </h1>
        <div class="tabs" role="tablist" aria-label="Playground">
          {TABS.map((name, i) => (
            <button
              type="button"
              role="tab"
              id={`tab-${name}`}
              aria-controls={`panel-${name}`}
              aria-selected={tab === name}
              tabIndex={tab === name ? 0 : -1}
              disabled={name === 'Chat' && noChat !== undefined}
              title={name === 'Chat' ? noChat : undefined}
              onClick={() => open(name)}
              onKeyDown={(event) => {
                const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
                if (step) open(TABS[(i + step + TABS.length) % TABS.length] as Tab);
              }}
            >
              {name}
            </button>
          ))}
        </div>
        <KeyField onChange={refresh} />
        <nav aria-label="Links">
          <a href="/docs">API reference</a>
        </nav>
      </header>
      <main>
        {/* All tabs stay mounted, so that a running answer and what was typed survive a look at another tab. */}
        <section id="panel-Tasks" role="tabpanel" aria-labelledby="tab-Tasks" hidden={tab !== 'Tasks'}>
          <TasksTab model={model} abilities={abilities} loading={state === 'loading'} />
        </section>
        <section id="panel-Chat" role="tabpanel" aria-labelledby="tab-Chat" hidden={tab !== 'Chat'}>
          <ChatTab obstacle={noChat} loading={state === 'loading'} />
        </section>
        <section id="panel-Evaluate" role="tabpanel" aria-labelledby="tab-Evaluate" hidden={tab !== 'Evaluate'}>
          <Evaluate shown={tab === 'Evaluate'} model={model} />
        </section>
        <section id="panel-Models" role="tabpanel" aria-labelledby="tab-Models" hidden={tab !== 'Models'}>
          <ModelsTab shown={tab === 'Models'} status={status} onChange={refresh} />
        </section>
      </main>
      <StatusLine status={status} />
    </>
  );
}

/** Shows the tab Evaluate, whose code is loaded when it is opened for the first time. */
function Evaluate({ shown, model }: { shown: boolean; model: string }) {
  const [EvaluateTab, setTab] = useState<ComponentType<{ model: string }> | null>(null);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    if (!shown || EvaluateTab) return;
    setError(null);
    import('./evaluate/evaluate-tab.tsx').then((loaded) => setTab(() => loaded.EvaluateTab), setError);
  }, [shown, EvaluateTab]);
  if (EvaluateTab) return <EvaluateTab model={model} />;
  return error ? <Problem error={error} /> : <p class="empty">Loading…</p>;
}

function tabOfHash(): Tab {
  return TABS.find((name) => `#${name.toLowerCase()}` === location.hash) ?? 'Tasks';
}

/**
 * Lets the user enter the API key. The key is kept in the tab's session storage and sent only to this server. Calls
 * `onChange` when the user leaves the field after a change.
 */
function KeyField({ onChange }: { onChange(): void }) {
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

/** Shows the server's state at the bottom of the page. */
function StatusLine({ status: { reachable, health, running, waiting, memory } }: { status: Status }) {
  if (reachable === false) {
    return (
      <footer class="status">
        <span class="dot error" /> <span>The server does not answer.</span>
      </footer>
    );
  }
  if (!health) return <footer class="status">Connecting…</footer>;
  const { state, device, active_model: model, reason, models = [] } = health;
  const others = models.filter(({ id }) => id !== model).map((other) => `${other.id} (${other.state})`);
  return (
    <footer class="status">
      <span class={`dot ${state}`} /> <span>{model === 'none' ? 'no model' : model}</span>
      {others.length > 0 && <span>beside {others.join(', ')}</span>}
      <span>{reason ? `${state}: ${reason}` : state}</span>
      <span>{device}</span>
      {running !== null && (
        <span>
          {running} running, {waiting} waiting
        </span>
      )}
      {memory !== null && memory > 0 && <span>{Math.round(memory / 2 ** 20)} MiB</span>}
    </footer>
  );
}

// At the end, because it runs what is above.
const root = document.getElementById('app');
if (root) render(<App />, root);
