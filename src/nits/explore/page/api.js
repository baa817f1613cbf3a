// Questions to the server, which answers in JSON or with one sentence of an error.

export async function ask(name, said = {}, signal = undefined) {
  const response = await reached(`api/${name}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(said),
    signal,
  });
  if (!response.ok) throw new Error(await sentence(response));
  return response;
}

async function reached(place, request) {
  try {
    return await fetch(place, request);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("the server does not answer; start nits explore again and open the address that it prints.");
  }
}

export async function json(name, said, signal) {
  return (await ask(name, said, signal)).json();
}

async function sentence(response) {
  try {
    return (await response.json()).error;
  } catch {
    return `the server answered ${response.status}; reload the page.`;
  }
}
