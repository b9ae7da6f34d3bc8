const dark = matchMedia('(prefers-color-scheme: dark)');
const adopt = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
dark.addEventListener('change', adopt);
adopt();

/**
 * Shows the path of an operation as text. The renderer's own link is inside the button that opens the operation, where
 * a keyboard cannot reach it apart; opening still sets the address of the page.
 */
const pathsAsText = ({ React }) => ({
  components: { DeepLink: ({ text }) => React.createElement('span', null, text) },
});

/** Names of fields that the renderer leaves without one. */
const NAMES = { '#servers': 'Server', '.examples-select-element': 'Example', '.body-param__text': 'Request body' };
const complete = () => {
  for (const [fields, name] of Object.entries(NAMES)) {
    for (const field of document.querySelectorAll(`${fields}:not([aria-label])`))
      field.setAttribute('aria-label', name);
  }
  // A keyboard has to reach what scrolls.
  for (const code of document.querySelectorAll('pre.microlight:not([tabindex])')) code.setAttribute('tabindex', '0');
};
new MutationObserver(complete).observe(document.body, { childList: true, subtree: true });

// "Try it out" sends requests to the server of this page, with the API key that the playground stored for this tab.
const contract = await (await fetch('/openapi.json')).json();
const reference = SwaggerUIBundle({
  spec: { ...contract, servers: [{ url: location.origin }] },
  dom_id: '#reference',
  deepLinking: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  validatorUrl: null,
  syntaxHighlight: { theme: 'monokai' },
  plugins: [pathsAsText],
  onComplete() {
    const key = sessionStorage.getItem('assay-api-key');
    if (key) reference.preauthorizeApiKey('bearer', key);
  },
});
