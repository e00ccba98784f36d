// Ordinary use of @google-cloud/pubsub on the server that PUBSUB_EMULATOR_HOST names; prints what was received as one line of JSON.

'use strict';

const {PubSub} = require('@google-cloud/pubsub');

const KEYS = 5;
const MESSAGES = 100;

/** Receive until enough messages were acknowledged; the texts by key, in the order of arrival. */
function receive(subscription, count, onMessage) {
  return new Promise((resolve, reject) => {
    const received = {};
    let acknowledged = 0;
    subscription.on('error', reject);
    subscription.on('message', async message => {
      (received[message.orderingKey] ??= []).push(message.data.toString());
      if (await onMessage(message) && ++acknowledged === count) resolve(received);
    });
  });
}

async function ordered(pubsub) {
  const [topic] = await pubsub.createTopic('node-ordered');
  const [subscription] = await topic.createSubscription('node-ordered', {enableMessageOrdering: true});
  const publisher = pubsub.topic('node-ordered', {messageOrdering: true});
  const done = receive(subscription, MESSAGES, message => (message.ack(), true));
  const ids = [];
  for (let n = 0; n < MESSAGES; n++) {
    ids.push(publisher.publishMessage({data: Buffer.from(String(n)), orderingKey: `k${n % KEYS}`}));
  }
  const distinct = new Set(await Promise.all(ids)).size;
  const received = await done;
  await subscription.close();
  return {received, distinct};
}

async function refused(pubsub) {
  const [topic] = await pubsub.createTopic('node-refused');
  const [subscription] = await topic.createSubscription('node-refused', {enableMessageOrdering: true});
  const publisher = pubsub.topic('node-refused', {messageOrdering: true});
  let refused = false;
  const done = receive(subscription, 4, message => {
    if (message.data.toString() === '2' && !refused) {
      refused = true;
      message.nack();
      return false;
    }
    message.ack();
    return true;
  });
  await Promise.all(['1', '2', '3'].map(text => publisher.publishMessage({data: Buffer.from(text), orderingKey: 'k'})));
  const received = await done;
  await subscription.close();
  return received.k;
}

async function exactlyOnce(pubsub) {
  const [topic] = await pubsub.createTopic('node-once');
  const options = {enableMessageOrdering: true, enableExactlyOnceDelivery: true, ackDeadlineSeconds: 60};
  const [subscription] = await topic.createSubscription('node-once', options);
  const publisher = pubsub.topic('node-once', {messageOrdering: true});
  const answers = [];
  const done = receive(subscription, 3, async message => {
    answers.push(await message.ackWithResponse());
    return true;
  });
  await Promise.all(['1', '2', '3'].map(text => publisher.publishMessage({data: Buffer.from(text), orderingKey: 'k'})));
  const received = await done;
  await subscription.close();
  return {received: received.k, answers};
}

async function main() {
  const pubsub = new PubSub({projectId: 'test'});
  const result = {ordered: await ordered(pubsub), refused: await refused(pubsub), once: await exactlyOnce(pubsub)};
  await pubsub.close();
  console.log(JSON.stringify(result));
}

main().catch(error => {
  console.error(error);
  process.exit(1);
});
