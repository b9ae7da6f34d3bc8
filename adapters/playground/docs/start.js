const dark = matchMedia('(prefers-color-scheme: dark)');
const adopt = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
dark.addEventListener('change', adopt);
adopt();

// "Try it out" sends requests to the server of this page, with the API key that the playground stored for this tab.
const contract = await (await fetch('/openapi.json')).json();
const reference = SwaggerUIBundle({
  spec: { ...contract, servers: [{ url: location.origin }] },
  dom_id: '#reference',
  deepLinking: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  validatorUrl: null,
  onComplete() {
    const key = sessionStorage.getItem('assay-api-key');
    if (key) reference.preauthorizeApiKey('bearer', key);
  },
});
