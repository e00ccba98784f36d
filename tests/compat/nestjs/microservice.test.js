// A NestJS microservice over Pub/Sub: requests with replies, events, redelivery of an event whose handler refused it.

'use strict';

require('reflect-metadata');
const assert = require('node:assert/strict');
const {test} = require('node:test');
const {Controller, Module} = require('@nestjs/common');
const {NestFactory} = require('@nestjs/core');
const {Ctx, EventPattern, MessagePattern, Payload} = require('@nestjs/microservices');
const {GCPubSubClient, GCPubSubServer} = require('nestjs-google-pubsub-microservice');
const {firstValueFrom} = require('rxjs');

const EVENTS = 20;
const client = {projectId: 'test'};
const names = {topic: 'nest', subscription: 'nest'};

class Orders {
  events = [];
  refused = false;
  complete = new Promise(resolve => (this.resolve = resolve));

  total(prices) {
    return prices.reduce((sum, price) => sum + price, 0);
  }

  created(number, context) {
    if (number === 0 && !this.refused) {
      this.refused = true;
      return context.getMessage().nack();
    }
    context.getMessage().ack();
    if (this.events.push(number) === EVENTS) this.resolve();
  }
}

/** What a TypeScript compiler makes of decorators on a class and its methods. */
function decorate() {
  const method = (decorator, name) => decorator(Orders.prototype, name, Object.getOwnPropertyDescriptor(Orders.prototype, name));
  Controller()(Orders);
  method(MessagePattern('total'), 'total');
  method(EventPattern('created'), 'created');
  Payload()(Orders.prototype, 'total', 0);
  Payload()(Orders.prototype, 'created', 0);
  Ctx()(Orders.prototype, 'created', 1);
  class Application {}
  Module({controllers: [Orders]})(Application);
  return Application;
}

test('requests are answered and events arrive, a refused one again', async () => {
  const strategy = new GCPubSubServer({...names, noAck: false, client});
  const app = await NestFactory.createMicroservice(decorate(), {strategy, logger: ['error']});
  await app.listen();
  const orders = app.get(Orders);
  const sender = new GCPubSubClient({...names, replyTopic: 'nest-reply', replySubscription: 'nest-reply', client});
  await sender.connect();
  for (let number = 0; number < EVENTS; number++) await firstValueFrom(sender.emit('created', number));
  await orders.complete;
  assert.deepEqual(orders.events.sort((a, b) => a - b), [...Array(EVENTS).keys()]);
  assert.ok(orders.refused);
  assert.equal(await firstValueFrom(sender.send('total', [1, 2, 3])), 6);
  await sender.close();
  await app.close();
});
